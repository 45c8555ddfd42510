/**
 * Tagger in one file, without any import: an ES module for browsers and node 18 or later.
 *
 * `skstruct.export` copies this file word for word and writes the data of a model below it. It is
 * `runtime.py` in JavaScript, with the same sections: the data, characters, features, scores,
 * labellings, chunks, the tagger. Nothing in the data is ever run: it is parsed as JSON, and texts of
 * the model are keys of maps and sets, never names of properties.
 *
 * States of a chain of first order are labels. From the second token on, states of a chain of second
 * order are pairs of labels. A `Step` lists the transitions into each state, so that everything below
 * is written once for both.
 */

// -------------------------------------------------------------------------------------- the data

const CHECKSUMS = Uint32Array.from({ length: 256 }, (_, byte) => {
  let c = byte;
  for (let bit = 0; bit < 8; bit++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c;
});

/** Read the data of a model; an Error unless they are what was written. */
export function verified(text, length, checksum) {
  let c = 0xffffffff;
  for (let i = 0; i < text.length; i++) c = CHECKSUMS[(c ^ text.charCodeAt(i)) & 255] ^ (c >>> 8);
  if (text.length !== length || (c ^ 0xffffffff) >>> 0 !== checksum) {
    throw new Error("The data of the model were cut off or changed: copy the file again.");
  }
  return JSON.parse(text);
}

/** Tagger from the text of a file that `skstruct.export.write_json` made. */
export function parseModel(text) {
  const file = JSON.parse(text);
  if (file === null || typeof file.data !== "string") {
    throw new Error("This is no model that skstruct has exported as JSON.");
  }
  return new Tagger(verified(file.data, file.length, file.checksum));
}

const ARRAYS = new Map([
  ["B", Uint8Array],
  ["H", Uint16Array],
  ["I", Uint32Array],
  ["f", Float32Array],
  ["d", Float64Array],
]);
const IS_LITTLE = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

/** Array of numbers, from the code of their type and their bytes. */
function numbers([code, text]) {
  const decoded = atob(text);
  const bytes = new Uint8Array(decoded.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = decoded.charCodeAt(i);
  const kind = ARRAYS.get(code);
  if (!IS_LITTLE) {
    const size = kind.BYTES_PER_ELEMENT;
    for (let i = 0; i < bytes.length; i += size) bytes.subarray(i, i + size).reverse();
  }
  return new kind(bytes.buffer);
}

/** Rows of numbers, most of them zero. */
class Rows {
  constructor(packed) {
    const [counts, columns, values] = packed.map(numbers);
    this.starts = new Uint32Array(counts.length + 1);
    counts.forEach((count, i) => (this.starts[i + 1] = this.starts[i] + count));
    this.columns = columns;
    this.values = values;
  }

  /** Add a multiple of row `i` to an array. */
  add(i, scale, row) {
    const end = this.starts[i + 1];
    for (let k = this.starts[i]; k < end; k++) row[this.columns[k]] += scale * this.values[k];
  }

  /** All rows as arrays. */
  dense(nColumns) {
    return Array.from({ length: this.starts.length - 1 }, (_, i) => {
      const row = new Float64Array(nColumns);
      this.add(i, 1, row);
      return row;
    });
  }
}

function accumulated(steps) {
  let sum = 0;
  return steps.map((step) => (sum += step));
}

// ------------------------------------------------------------------------------------ characters

/** Characters, by the code points at which membership changes. */
class CharacterSet {
  constructor(steps) {
    this.edges = accumulated(steps);
  }

  has(character) {
    const point = character.codePointAt(0);
    let [low, high] = [0, this.edges.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.edges[middle] <= point) low = middle + 1;
      else high = middle;
    }
    return low % 2 === 1;
  }
}

/** Functions of texts, by the Unicode of the Python that wrote the model. */
class Characters {
  constructor(sets, maps) {
    this.sets = new Map(sets.map(([name, steps]) => [name, new CharacterSet(steps)]));
    this.maps = new Map(maps.map(([name, packed]) => [name, asMap(packed)]));
    this.shapes = new Map();
  }

  isIn(name, character) {
    return this.sets.get(name).has(character);
  }

  shapeOf(c) {
    if (!this.shapes.has(c)) {
      const kinds = [["upper", "X"], ["alpha", "x"], ["digit", "d"]];
      const kind = kinds.find(([name]) => this.isIn(name, c));
      this.shapes.set(c, kind ? kind[1] : c);
    }
    return this.shapes.get(c);
  }

  /** Capitals as X, other letters as x, and digits as d. */
  shape(value) {
    return Array.from(value, (c) => this.shapeOf(c)).join("");
  }

  /** The shape, with each run of a character as one. */
  shortShape(value) {
    const shape = Array.from(value, (c) => this.shapeOf(c));
    return shape.filter((c, i) => i === 0 || c !== shape[i - 1]).join("");
  }

  /** Every digit as 0. */
  digits(value) {
    return Array.from(value, (c) => (this.isIn("decimal", c) ? "0" : c)).join("");
  }

  mapped(name, value) {
    const map = this.maps.get(name);
    return Array.from(value, (c) => map.get(c) ?? c).join("");
  }

  /** Text whose case does not count. */
  fold(value) {
    return this.mapped("fold", value);
  }

  /** Text in lower case; a sigma at the end of a word has a form of its own. */
  lower(value) {
    if (!value.includes("\u03a3")) return this.mapped("lower", value);
    const [all, map] = [Array.from(value), this.maps.get("lower")];
    const lower = (c, i) => (c === "\u03a3" && this.endsWord(all, i) ? "\u03c2" : map.get(c) ?? c);
    return all.map(lower).join("");
  }

  endsWord(all, i) {
    return this.isCased(all.slice(0, i).reverse()) && !this.isCased(all.slice(i + 1));
  }

  isCased(all) {
    return this.isIn("cased", all.find((c) => !this.isIn("ignorable", c)) ?? "0");
  }
}

/** Texts by character: runs of first, number, stride and distance, and others. */
function asMap([runs, others]) {
  const found = new Map(others.map(([point, text]) => [String.fromCodePoint(point), text]));
  for (let k = 0; k < runs.length; k += 4) {
    const [first, n, stride, distance] = runs.slice(k, k + 4);
    for (let c = first; c < first + n * stride; c += stride) {
      found.set(String.fromCodePoint(c), String.fromCodePoint(c + distance));
    }
  }
  return found;
}

/**
 * Function from a text to the first match of a pattern, or null.
 *
 * An atom is a test of a character, and how often it may be: once (""), or at most once ("?"), or any
 * number of times ("*"). The former wants as many as possible, the latter as few as possible.
 */
function search(atoms, atStart, atEnd) {
  function match(text, i, place, failed) {
    for (; i < atoms.length && atoms[i][1] === ""; i++, place++) {
      if (place === text.length || !atoms[i][0](text[place])) return -1;
    }
    if (i === atoms.length) return atEnd && place < text.length ? -1 : place;
    if (failed.has(`${i} ${place}`)) return -1;
    const [test, repeat] = atoms[i];
    let end = -1;
    if (repeat === "?" && place < text.length && test(text[place])) {
      end = match(text, i + 1, place + 1, failed);
    }
    if (repeat === "?" && end < 0) end = match(text, i + 1, place, failed);
    while (repeat === "*") {
      end = match(text, i + 1, place, failed);
      if (end >= 0 || place === text.length || !test(text[place])) break;
      place++;
    }
    if (end < 0) failed.add(`${i} ${place}`);
    return end;
  }

  return (value) => {
    const [text, failed] = [Array.from(value), new Set()];
    for (let start = 0; start < (atStart ? 1 : text.length + 1); start++) {
      const end = match(text, 0, start, failed);
      if (end >= 0) return text.slice(start, end).join("");
    }
    return null;
  };
}

// -------------------------------------------------------------------------------------- features

// Results of functions that are remembered, before all are forgotten.
const MOST_RESULTS = 1 << 16;

/** What a value is, for messages. */
function shown(value) {
  if (typeof value === "string") return JSON.stringify(value);
  return Array.isArray(value) ? `an array of ${value.length}` : String(value);
}

/** Features of tokens that are words, or words and further columns, by a template. */
class Columns {
  constructor(data) {
    this.nColumns = data.n_columns;
    this.characters = new Characters(data.sets, data.maps);
    this.lists = data.gazetteers.map((entries) => new Gazetteer(entries, this.characters));
    const [words, paths] = data.clusters;
    this.clusters = new Map(words.map((word, i) => [word, paths[i]]));
    const [counted, which, values] = data.statistics;
    this.statistics = new Map(counted.map((word, i) => [word, values[which[i]]]));
    this.keepsCase = data.keeps_case;
    this.sources = data.sources.map(([column, steps]) => [
      column,
      steps.map((step) => this.function(...step)),
    ]);
    this.results = this.sources.map(() => new Map());
    this.lines = data.lines;
    this.margin = 0;
    for (const [, macros] of this.lines) {
      for (const [, offset, absolute] of macros) {
        if (!absolute) this.margin = Math.max(this.margin, Math.abs(offset));
      }
    }
  }

  function(name, ...options) {
    switch (name) {
      case "prefix":
        return (value) => Array.from(value).slice(0, options[0]).join("");
      case "suffix":
        return (value) => Array.from(value).slice(-options[0]).join("");
      case "match":
        return this.match(...options);
      case "cluster":
        return (word) => this.cluster(word, options[0]);
      case "lower":
        return (value) => this.characters.lower(value);
      case "digits":
        return (value) => this.characters.digits(value);
      case "shape":
        return (value) => this.characters.shape(value);
      case "shortshape":
        return (value) => this.characters.shortShape(value);
      case "length":
        return (value) => String(Array.from(value).length);
      case "matched":
        return (mark) => mark || null;
      case "labels":
        return (word) => this.label(word);
    }
    throw new Error(`This file has the function ${name}, which its reader does not know.`);
  }

  match(tells, atoms, atStart, atEnd) {
    const tests = new Map([
      ["any", () => () => true],
      ["is", (one) => (c) => c === one],
      ["in", (name) => (c) => this.characters.isIn(name, c)],
    ]);
    const find = search(
      atoms.map(([kind, of, often]) => [tests.get(kind)(of), often]),
      atStart,
      atEnd,
    );
    return tells ? (value) => (find(value) === null ? "false" : "true") : (value) => find(value) ?? "";
  }

  cluster(word, n) {
    const found = this.clusters.get(word) ?? this.clusters.get(this.characters.lower(word));
    return found === undefined ? null : Array.from(found).slice(0, n).join("");
  }

  label(word) {
    return this.statistics.get(this.keepsCase ? word : this.characters.lower(word)) ?? "new";
  }

  /** Columns of the tokens, those of the lists last. */
  read(tokens) {
    const columns = Array.from({ length: this.nColumns }, () => []);
    tokens.forEach((token, t) => {
      const values = Array.isArray(token) ? token : [token];
      if (values.length !== this.nColumns) {
        throw new TypeError(`Token ${t} is ${shown(token)}; expected ${this.nColumns} column(s), strings.`);
      }
      values.forEach((value, c) => columns[c].push(asText(value, t)));
    });
    return columns.concat(this.lists.map((list) => list.find(columns[0])));
  }

  /** Values of a column after its functions; null where they give none. */
  source(number, values) {
    const functions = this.sources[number][1];
    if (functions.length === 0) return values;
    const results = this.results[number];
    if (results.size > MOST_RESULTS) results.clear();
    return values.map((value) => {
      let result = results.get(value);
      if (result === undefined) {
        result = value;
        for (const step of functions) result = result === null ? null : step(result);
        results.set(value, result);
      }
      return result;
    });
  }

  /** Names of the features of each token, and pairs of name and value of the others. */
  features(tokens) {
    const found = tokens.map(() => [[], []]);
    const [n, m] = [tokens.length, this.margin];
    if (n === 0) return found;
    const columns = this.read(tokens);
    const sources = this.sources.map(([column], i) => this.source(i, columns[column]));
    const before = Array.from({ length: m }, (_, i) => `_B-${m - i}`);
    const after = Array.from({ length: m }, (_, i) => `_B+${i + 1}`);
    const padded = sources.map((values) => [...before, ...values, ...after]);
    for (const [literals, macros] of this.lines) {
      for (let t = 0; t < n; t++) {
        let name = literals[0];
        for (let p = 0; p < macros.length; p++) {
          const [i, offset, absolute] = macros[p];
          const value = absolute ? at(sources[i], offset) : padded[i][m + t + offset];
          if (value === null) {
            name = null;
            break;
          }
          name += value + literals[p + 1];
        }
        if (name !== null) found[t][0].push(name);
      }
    }
    return found;
  }
}

function asText(value, t) {
  if (typeof value === "string") return value;
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Number.isSafeInteger(value)) return String(value);
  throw new TypeError(`Token ${t} has the column ${shown(value)}; expected a string.`);
}

/** Value at a position counted from 1, or from -1 at the end. */
function at(values, position) {
  const place = position > 0 ? position - 1 : values.length + position;
  if (place < 0) return `_B-${-place}`;
  return place < values.length ? values[place] : `_B+${place - values.length + 1}`;
}

/** Marks of the tokens that are part of a name in a list. */
class Gazetteer {
  constructor(entries, characters) {
    this.entries = new Set(entries);
    this.characters = characters;
    this.longest = new Map();
    for (const entry of entries) {
      const words = entry.split(" ");
      this.longest.set(words[0], Math.max(this.longest.get(words[0]) ?? 0, words.length));
    }
  }

  find(given) {
    // No word of a list has a blank.
    const words = given.map((word) => (word.includes(" ") ? "" : this.characters.fold(word)));
    const marks = words.map(() => "");
    for (let t = 0; t < words.length; ) {
      let n = Math.min(this.longest.get(words[t]) ?? 0, words.length - t);
      while (n > 0 && !this.entries.has(words.slice(t, t + n).join(" "))) n--;
      for (let k = 0; k < n; k++) marks[t + k] = k === 0 ? "B" : k === n - 1 ? "E" : "I";
      if (n === 1) marks[t] = "S";
      t += Math.max(n, 1);
    }
    return marks;
  }
}

/** Features of tokens that are objects or maps, or arrays or sets of attribute strings. */
class Attributes {
  constructor(data) {
    this.isSingle = data.single;
  }

  features(tokens) {
    return tokens.map((token, t) => {
      const [names, others] = [[], []];
      if (areStrings(token)) names.push(...token);
      else if (pairsOf(token) !== null) this.add(t, "", token, names, others);
      else {
        throw new TypeError(`Token ${t} is ${shown(token)}; expected an object or a map, or an array of strings.`);
      }
      return [names, others];
    });
  }

  add(t, prefix, features, names, others) {
    for (const [key, value] of pairsOf(features)) {
      if (typeof key !== "string") {
        throw new TypeError(`Token ${t}: the name ${shown(key)} of a feature is not a string.`);
      }
      const name = prefix + key;
      const number = typeof value === "boolean" ? Number(value) : value;
      if (typeof value === "string") names.push(`${name}:${value}`);
      else if (areStrings(value)) for (const one of value) names.push(`${name}:${one}`);
      else if (pairsOf(value) !== null) this.add(t, `${name}:`, value, names, others);
      else if (Number.isFinite(number)) {
        others.push([name, this.isSingle ? Math.fround(number) : number]);
      } else {
        throw new TypeError(
          `Token ${t}: feature ${shown(name)} is ${shown(value)}; expected a string, a boolean, a ` +
            "finite number, an object or a map of these, or an array of strings.",
        );
      }
    }
  }
}

function areStrings(values) {
  const isCollection = Array.isArray(values) || values instanceof Set;
  return isCollection && [...values].every((value) => typeof value === "string");
}

/** Keys and values of a map or of an object, null for anything else. */
function pairsOf(value) {
  if (value instanceof Map) return [...value];
  const isObject = typeof value === "object" && value !== null;
  if (!isObject || Symbol.iterator in value || ArrayBuffer.isView(value)) return null;
  return Object.entries(value);
}

// ---------------------------------------------------------------------------------------- scores

/** Transitions into each state of a token: states before, in order, and scores. */
class Step {
  constructor(labels, sources, scores) {
    this.labels = labels;
    this.sources = sources.map((states) => Uint32Array.from(states));
    this.scores = scores.map((values) => Float64Array.from(values));
  }
}

function range(first, last) {
  return Array.from({ length: last - first }, (_, i) => first + i);
}

/** Labels of the states of the first token, the step to the second one, and to all others. */
function stepsOf(n, transition, triple) {
  const labels = range(0, n);
  const before = labels.map((j) => labels.filter((i) => transition[i][j] > -Infinity));
  const into = labels.map((j) => before[j].map((i) => transition[i][j]));
  if (triple === null) {
    const step = new Step(labels, before, into);
    return [labels, step, step];
  }
  const pairs = labels.flatMap((j) => before[j].map((i) => [i, j]));
  const second = new Step(
    pairs.map(([, j]) => j),
    pairs.map(([i]) => [i]),
    into.flat().map((score) => [score]),
  );
  const ending = [0, ...accumulated(before.map((states) => states.length))];
  const sources = pairs.map(([i]) => range(ending[i], ending[i + 1]));
  const scores = pairs.map(([j, k]) => before[j].map((i) => transition[j][k] + triple[i * n + j][k]));
  return [labels, second, new Step(second.labels, sources, scores)];
}

/** Scores of labels and of transitions. */
class Chain {
  constructor(data) {
    const n = data.labels.length;
    this.bias = numbers(data.bias);
    this.start = numbers(data.start);
    this.end = numbers(data.end);
    const triple = data.triple === null ? null : new Rows(data.triple).dense(n);
    [this.labels, ...this.steps] = stepsOf(n, new Rows(data.transition).dense(n), triple);
    this.places = new Map();
    for (const [prefix, rests] of data.names) {
      for (const rest of rests.split(data.between)) this.places.set(prefix + rest, this.places.size);
    }
    this.weights = new Rows(data.weights);
  }

  /** Transitions into token `t`, from the second token on. */
  step(t) {
    return this.steps[Math.min(t, 2) - 1];
  }

  /** Labels of the states of a token. */
  labelsAt(t) {
    return t === 0 ? this.labels : this.step(t).labels;
  }

  /** Scores of the states of each token, from the names and values of its features. */
  rows(tokens) {
    const found = tokens.map(([names, others]) => {
      const row = Float64Array.from(this.bias);
      for (const name of names) {
        const i = this.places.get(name);
        if (i !== undefined) this.weights.add(i, 1, row);
      }
      for (const [name, value] of others) {
        const i = this.places.get(name);
        if (i !== undefined) this.weights.add(i, value, row);
      }
      return row;
    });
    const [first, last] = [found[0], found[found.length - 1]];
    this.start.forEach((score, j) => (first[j] += score));
    this.end.forEach((score, j) => (last[j] += score));
    const [second, later] = this.steps;
    if (second === later) return found;
    return found.map((row, t) => (t === 0 ? row : Float64Array.from(second.labels, (k) => row[k])));
  }
}

// ------------------------------------------------------------------------------------ labellings

function impossible() {
  return new RangeError("The constraint of the model leaves no labelling of these tokens.");
}

function firstLargest(values) {
  let best = 0;
  for (let s = 1; s < values.length; s++) if (values[s] > values[best]) best = s;
  return best;
}

/** Viterbi: states of the best labelling; of equal ones, the first. */
function bestStates(chain, rows) {
  let prefix = rows[0];
  const back = [];
  for (let t = 1; t < rows.length; t++) {
    const { sources, scores } = chain.step(t);
    const [best, places] = [new Float64Array(sources.length), new Uint32Array(sources.length)];
    for (let s = 0; s < sources.length; s++) {
      const [before, into] = [sources[s], scores[s]];
      let [top, place] = [-Infinity, 0];
      for (let k = 0; k < before.length; k++) {
        const sum = prefix[before[k]] + into[k];
        if (sum > top) [top, place] = [sum, before[k]];
      }
      best[s] = top + rows[t][s];
      places[s] = place;
    }
    prefix = best;
    back.push(places);
  }
  const states = [firstLargest(prefix)];
  if (prefix[states[0]] === -Infinity) throw impossible();
  for (const places of back.reverse()) states.push(places[states[states.length - 1]]);
  return states.reverse();
}

/** Logarithm of the sum of exponentials. */
function logSum(values) {
  let top = -Infinity;
  for (const value of values) if (value > top) top = value;
  if (top === -Infinity) return top;
  let sum = 0;
  for (const value of values) sum += Math.exp(value - top);
  return top + Math.log(sum);
}

/** Logarithms of the sums over all that ends with each state, and over all labellings. */
function forward(chain, rows) {
  const alpha = [rows[0]];
  for (let t = 1; t < rows.length; t++) {
    const { sources, scores } = chain.step(t);
    const previous = alpha[t - 1];
    alpha.push(rows[t].map((x, s) => x + logSum(scores[s].map((y, k) => y + previous[sources[s][k]]))));
  }
  const total = logSum(alpha[alpha.length - 1]);
  if (total === -Infinity) throw impossible();
  return [alpha, total];
}

/** Logarithms of the sums over all that follows each state. */
function backward(chain, rows) {
  let next = new Float64Array(rows[rows.length - 1].length);
  const beta = [next];
  for (let t = rows.length - 1; t > 0; t--) {
    const { sources, scores } = chain.step(t);
    const terms = Array.from(rows[t - 1], () => []);
    for (let s = 0; s < sources.length; s++) {
      const after = rows[t][s] + next[s];
      sources[s].forEach((i, k) => terms[i].push(scores[s][k] + after));
    }
    next = Float64Array.from(terms, logSum);
    beta.push(next);
  }
  return beta.reverse();
}

function normalised(values) {
  const total = values.reduce((sum, value) => sum + value, 0);
  if (!(total > 0.5 && total < 2)) {
    throw new RangeError("Scores are so large that probabilities are lost in rounding.");
  }
  return values.map((value) => value / total);
}

/** Probabilities of the states of each token, and the backward sums. */
function marginals(chain, rows) {
  const [[alpha, total], beta] = [forward(chain, rows), backward(chain, rows)];
  const found = alpha.map((row, t) => normalised(row.map((a, s) => Math.exp(a + beta[t][s] - total))));
  return [found, beta];
}

/** States of the n best labellings and their scores, best first. */
function nBest(chain, rows, n) {
  // An entry is a score, the state before, and the place among the entries of that state.
  const lists = [Array.from(rows[0], (x) => [[x, 0, 0]])];
  for (let t = 1; t < rows.length; t++) {
    const { sources, scores } = chain.step(t);
    const previous = lists[t - 1];
    lists.push(
      Array.from(rows[t], (x, s) => {
        const entries = [];
        sources[s].forEach((i, place) => {
          previous[i].forEach(([y], k) => {
            if (y > -Infinity) entries.push([y + scores[s][place], i, k]);
          });
        });
        return sorted(entries).slice(0, n).map(([y, i, k]) => [y + x, i, k]);
      }),
    );
  }
  const ends = lists[lists.length - 1].flatMap((entries, s) => entries.map(([x], k) => [x, s, k]));
  const found = sorted(ends.filter(([x]) => x > -Infinity)).slice(0, n);
  return found.map(([score, s, k]) => [score, follow(lists, s, k)]);
}

function sorted(entries) {
  return entries.sort((a, b) => b[0] - a[0]);
}

/** States of a labelling, from its last entry. */
function follow(lists, s, k) {
  const states = [];
  for (let t = lists.length - 1; t >= 0; t--) {
    states.push(s);
    [, s, k] = lists[t][s][k];
  }
  return states.reverse();
}

// ---------------------------------------------------------------------------------------- chunks

/**
 * Probabilities of spans, and the choice among them.
 *
 * The probability that tokens `a` to `b - 1` are a chunk is a sum over paths through labels that go on
 * with each other: the chunk begins at `a`, goes on, and ends before `b`.
 */
class Chunks {
  constructor(data, chain) {
    this.types = data.types;
    this.separable = data.separable;
    this.kinds = data.kinds;
    this.goesOn = data.goes_on.map((labels) => new Set(labels));
    this.chain = chain;
  }

  /** Start, end, number of the type and probability of the chunks that are chosen. */
  choose(rows, threshold) {
    const [begins, ends, inside] = this.paths(rows);
    const choice = new Choice(rows.length, threshold, this.separable);
    begins.forEach((open, t) => {
      choice.settle(t);
      const kinds = this.kindsAt(t);
      for (let kind = 0; kind < this.types.length; kind++) {
        let mass = new Map([...open].filter(([s]) => kinds[s] === kind));
        for (let end = t; end < rows.length && total(mass) > threshold; ) {
          let p = 0;
          for (const [s, q] of mass) p += q * (ends[end].get(s) ?? 0);
          if (p > threshold) choice.push(t, end + 1, kind, p);
          end++;
          if (end < rows.length) mass = extended(mass, inside[end]);
        }
      }
    });
    choice.settle(rows.length);
    return choice.trace();
  }

  kindsAt(t) {
    return this.chain.labelsAt(t).map((label) => this.kinds[label]);
  }

  /** At each token, what begins in a state, the share of it that ends, and what goes on. */
  paths(rows) {
    const [proba, beta] = marginals(this.chain, rows);
    const [kinds, begins, ends, inside] = [this.kindsAt(0), [new Map()], [], [[]]];
    proba[0].forEach((p, s) => {
      if (kinds[s] >= 0) begins[0].set(s, p);
    });
    for (let t = 1; t < rows.length; t++) {
      const [before, after] = [this.chain.labelsAt(t - 1), this.chain.labelsAt(t)];
      const [opens, closes, goesOn] = [new Map(), new Map(), []];
      for (const [i, s, p] of this.moves(rows, beta, t)) {
        if (this.goesOn[before[i]].has(after[s])) {
          goesOn.push([i, s, p]);
          continue;
        }
        if (this.kinds[after[s]] >= 0) opens.set(s, (opens.get(s) ?? 0) + proba[t - 1][i] * p);
        closes.set(i, (closes.get(i) ?? 0) + p);
      }
      begins.push(opens);
      ends.push(closes);
      inside.push(goesOn);
    }
    ends.push(new Map(Array.from(rows[rows.length - 1], (_, s) => [s, 1])));
    return [begins, ends, inside];
  }

  /** Probability of each state of a token after each state of the one before. */
  moves(rows, beta, t) {
    const { sources, scores } = this.chain.step(t);
    const [before, found] = [beta[t - 1], []];
    sources.forEach((states, s) => {
      const after = rows[t][s] + beta[t][s];
      states.forEach((i, k) => {
        if (after > -Infinity && before[i] > -Infinity) {
          found.push([i, s, Math.exp(scores[s][k] + after - before[i])]);
        }
      });
    });
    return found;
  }
}

function total(mass) {
  let sum = 0;
  for (const p of mass.values()) sum += p;
  return sum;
}

function extended(mass, moves) {
  const found = new Map();
  for (const [i, s, p] of moves) {
    if (mass.has(i)) found.set(s, (found.get(s) ?? 0) + mass.get(i) * p);
  }
  return found;
}

/**
 * The spans without overlap whose sum of `probability - threshold` is largest.
 *
 * Of the spans that end before a token, the best one is kept, and the best one of another type: a
 * chunk of some types cannot follow one of the same type at once.
 */
class Choice {
  constructor(length, threshold, separable) {
    this.threshold = threshold;
    this.separable = separable;
    this.best = new Float64Array(length + 1);
    this.other = new Float64Array(length + 1);
    // Sum, start, kind and probability.
    const none = [-Infinity, 0, -1, 0];
    this.spans = Array.from({ length: length + 1 }, () => [none, none]);
  }

  /** Add up the spans that end by token `t`: all that start before are there. */
  settle(t) {
    const high = t === 0 ? 0 : this.best[t - 1];
    const [best, other] = this.spans[t];
    this.best[t] = Math.max(high, best[0]);
    this.other[t] = Math.max(high, other[0]);
  }

  runsOn(t, kind) {
    const span = this.spans[t][0];
    if (this.separable[kind] || t === 0 || span[2] !== kind) return false;
    return span[0] > this.best[t - 1];
  }

  /** Take a span; of equal ones the last. */
  push(start, end, kind, p) {
    const before = (this.runsOn(start, kind) ? this.other : this.best)[start];
    const [sum, spans] = [before + p - this.threshold, this.spans[end]];
    if (sum >= spans[0][0]) {
      if (spans[0][2] !== kind) spans[1] = spans[0];
      spans[0] = [sum, start, kind, p];
    } else if (kind !== spans[0][2] && sum >= spans[1][0]) spans[1] = [sum, start, kind, p];
  }

  /** Return the spans in order. */
  trace() {
    let [t, place] = [this.best.length - 1, 0];
    const found = [];
    while (t > 0) {
      const [sum, start, kind, p] = this.spans[t][place];
      if (!(sum > this.best[t - 1])) {
        [t, place] = [t - 1, 0];
        continue;
      }
      found.push([start, t, kind, Math.min(p, 1)]);
      [t, place] = [start, Number(this.runsOn(start, kind))];
    }
    return found.reverse();
  }
}

/** Write the labels of a chunk into an array that has those of the chunks before it. */
function writeChunk(labels, start, end, kind, letters) {
  const [first, inner, last, only, opens, closes] = letters;
  const [tail, before] = [kind === "_" ? "" : `-${kind}`, start > 0 ? labels[start - 1] : "O"];
  for (let t = start; t < end; t++) {
    labels[t] = (t === start ? first : t === end - 1 ? last : inner) + tail;
  }
  if (end - start === 1) labels[start] = only + tail;
  if (before !== "O" && before.slice(1) === tail) {
    if (opens) labels[start] = opens + tail;
    if (closes) labels[start - 1] = closes + tail;
  }
}

// ------------------------------------------------------------------------------------ the tagger

/**
 * A model; `tokens` are those of one sentence.
 *
 * A token is a word or, if the model has further columns, an array of columns. Models of feature dicts
 * and of attribute strings take objects and maps, and arrays and sets of strings.
 */
export class Tagger {
  #chain;
  #chunks;
  #features;
  #noChunks;
  #scheme;

  constructor(data) {
    this.labels = data.labels;
    this.threshold = data.threshold;
    this.version = data.skstruct;
    this.date = data.date;
    this.readsColumns = data.input === "columns";
    this.readsWords = this.readsColumns && data.n_columns === 1;
    this.#features = this.readsColumns ? new Columns(data) : new Attributes(data);
    this.#chain = new Chain(data);
    this.#noChunks = data.no_chunks;
    this.#scheme = data.scheme;
    this.#chunks = data.chunks === null ? null : new Chunks(data.chunks, this.#chain);
  }

  #rows(tokens) {
    if (!Array.isArray(tokens)) {
      throw new TypeError(`tokens is ${shown(tokens)}; expected an array of the tokens of a sentence.`);
    }
    return tokens.length === 0 ? [] : this.#chain.rows(this.#features.features(tokens));
  }

  #names(states) {
    return states.map((s, t) => this.labels[this.#chain.labelsAt(t)[s]]);
  }

  /** Names of the features of each token whose value is 1, known or not. */
  features(tokens) {
    return this.#features.features(tokens).map(([names]) => names);
  }

  /** Find the label of each token. */
  tag(tokens) {
    const rows = this.#rows(tokens);
    if (rows.length === 0) return [];
    if (this.#scheme !== null) return this.#labelsOfChunks(rows);
    return this.#names(bestStates(this.#chain, rows));
  }

  #labelsOfChunks(rows) {
    const types = this.#chunks.types;
    const labels =
      typeof types[0] === "string" ? rows.map(() => "O") : this.#names(bestStates(this.#chain, rows));
    for (const [start, end, kind] of this.#chunks.choose(rows, this.threshold)) {
      if (this.#scheme.length > 0) writeChunk(labels, start, end, types[kind], this.#scheme);
      else labels.fill(types[kind], start, end);
    }
    return labels;
  }

  /** Find the probability of each label at each token: an array of maps. */
  probabilities(tokens) {
    const rows = this.#rows(tokens);
    if (rows.length === 0) return [];
    return marginals(this.#chain, rows)[0].map((proba, t) => {
      const byLabel = new Map(this.labels.map((label) => [label, 0]));
      const labels = this.#chain.labelsAt(t);
      proba.forEach((p, s) => {
        const label = this.labels[labels[s]];
        byLabel.set(label, byLabel.get(label) + p);
      });
      return byLabel;
    });
  }

  /** Find chunks that are more probable than a threshold: `{ start, end, type, probability }`. */
  spans(tokens, threshold = this.threshold) {
    if (!(typeof threshold === "number" && threshold >= 0 && threshold <= 1)) {
      throw new RangeError(`threshold must be a number from 0 to 1, got ${shown(threshold)}.`);
    }
    if (this.#noChunks) throw new Error(this.#noChunks);
    const rows = this.#rows(tokens);
    if (rows.length === 0) return [];
    return this.#chunks.choose(rows, threshold).map(([start, end, kind, probability]) => ({
      start,
      end,
      type: this.#chunks.types[kind],
      probability,
    }));
  }

  /** Find the n best labellings, best first: `{ labels, score, probability }`. */
  nbest(tokens, n = 5) {
    if (!(Number.isInteger(n) && n >= 1)) {
      throw new RangeError(`n must be a positive integer, got ${shown(n)}.`);
    }
    const rows = this.#rows(tokens);
    if (rows.length === 0) return [{ labels: [], score: 0, probability: 1 }];
    const total = forward(this.#chain, rows)[1];
    return nBest(this.#chain, rows, n).map(([score, states]) => ({
      labels: this.#names(states),
      score,
      probability: Math.exp(Math.min(score - total, 0)),
    }));
  }
}
