// The page that tags with a file of the reader's. It parses the file as JSON, and runs nothing in it.
import { parseModel } from "./runtime.js";
import { show, wordsOf } from "./try.js";

const box = document.querySelector("#try-model");
const [file, text] = [box.querySelector("input"), box.querySelector("textarea")];
const [tagged, note] = [box.querySelector("output"), box.querySelector(".note")];
let model = null;

/** Sentences of the text, as the model reads them: tokens, and their texts. */
function sentencesOf(lines) {
  if (model.readsWords) return lines.split("\n").map(wordsOf);
  const separator = model.readsColumns ? /\s+/ : "\t";
  const sentences = lines.split(/\n\s*\n/).map((part) => part.split("\n").filter((line) => line.trim()));
  return sentences.map((part) => part.map((line) => line.trim().split(separator)));
}

function tag() {
  if (model === null) return;
  try {
    const lines = sentencesOf(text.value).filter((tokens) => tokens.length > 0);
    tagged.replaceChildren(
      ...lines.map((tokens) => {
        const line = document.createElement("p");
        show(line, model, tokens, tokens.map((token) => (Array.isArray(token) ? token[0] : token)));
        return line;
      }),
    );
    note.textContent = howToWrite();
  } catch (error) {
    tagged.replaceChildren();
    note.textContent = error.message;
  }
}

function howToWrite() {
  if (model.readsWords) return "A sentence a line.";
  const between = model.readsColumns ? "blanks" : "tabs";
  return `A token a line, its columns between ${between}, and an empty line after each sentence.`;
}

async function read() {
  [model] = [null, tagged.replaceChildren()];
  if (file.files.length === 0) return;
  try {
    model = parseModel(await file.files[0].text());
    tag();
  } catch (error) {
    const reason = error instanceof SyntaxError ? "This is no JSON." : error.message;
    note.textContent = `${file.files[0].name}: ${reason}`;
  }
}

file.addEventListener("change", read);
text.addEventListener("input", tag);
box.hidden = false;
document.querySelector("#try-model-without").hidden = true;
