// The box of the home page. Without scripts, the picture in its place stays.
import { model } from "./addresses.js";
import { show, wordsOf } from "./try.js";

const box = document.querySelector("#try-address");
const [text, tagged] = [box.querySelector("input"), box.querySelector("output")];
const tag = () => show(tagged, model, wordsOf(text.value));
text.addEventListener("input", tag);
tag();
box.hidden = false;
for (const picture of document.querySelectorAll(".until-try")) picture.hidden = true;
