// What the two pages that tag as one types have in common. Texts, labels and types go into the page
// as the content of text nodes, never as markup.

/** Words of a text: punctuation that separates the parts of an address stands alone. */
export function wordsOf(text) {
  return text.replace(/[,;|]/g, " $& ").split(/\s+/).filter(Boolean);
}

/** Hue of a type, that of `skstruct.inspection.TaggedText`. */
function hueOf(type) {
  let c = 0xffffffff;
  for (const byte of new TextEncoder().encode(String(type))) {
    c ^= byte;
    for (let bit = 0; bit < 8; bit++) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  }
  return Number((BigInt((c ^ 0xffffffff) >>> 0) * 137n) % 360n);
}

function percent(p) {
  return `${Math.round(100 * p)} %`;
}

/** Words of a chunk, with its type and probability. */
function markOf(text, type, probability) {
  const mark = document.createElement("mark");
  mark.style.setProperty("--hue", hueOf(type));
  const note = document.createElement("small");
  note.textContent = `${type} ${percent(probability)}`;
  mark.append(text, " ", note);
  return mark;
}

/** Chunks of a sentence; where labels are none of chunks, a chunk for each label but O. */
function chunksOf(model, tokens) {
  try {
    return model.spans(tokens);
  } catch (error) {
    if (error instanceof RangeError) throw error;
    const [labels, proba] = [model.tag(tokens), model.probabilities(tokens)];
    return labels
      .map((type, start) => ({ start, end: start + 1, type, probability: proba[start].get(type) }))
      .filter(({ type }) => type !== "O");
  }
}

/** Show a sentence with its chunks in an element; `texts` are those of the tokens. */
export function show(element, model, tokens, texts = tokens) {
  const parts = [];
  let end = 0;
  const rest = (until) => texts.slice(end, until).forEach((text) => parts.push(`${text} `));
  for (const chunk of tokens.length > 0 ? chunksOf(model, tokens) : []) {
    rest(chunk.start);
    const text = texts.slice(chunk.start, chunk.end).join(" ");
    parts.push(markOf(text, chunk.type, chunk.probability), " ");
    end = chunk.end;
  }
  rest(texts.length);
  element.replaceChildren(...parts);
}
