/** Types of a tagger that `skstruct.export` wrote; its `tokens` are those of one sentence. */

export type Label = string | number;
export type Value = string | boolean | number | string[] | Set<string> | Features;
export type Features = Map<string, Value> | { [name: string]: Value };
/** A word, its columns, or its features, as the model takes them. */
export type Token = string | (string | number | boolean)[] | Set<string> | Features;

export interface Labelling {
  labels: Label[];
  score: number;
  probability: number;
}

export interface Span {
  start: number;
  end: number;
  type: Label;
  probability: number;
}

export class Tagger {
  constructor(data: object);
  readonly labels: Label[];
  readonly threshold: number;
  readonly version: string;
  readonly date: string | null;
  readonly readsWords: boolean;
  readonly readsColumns: boolean;
  features(tokens: Token[]): string[][];
  tag(tokens: Token[]): Label[];
  probabilities(tokens: Token[]): Map<Label, number>[];
  spans(tokens: Token[], threshold?: number): Span[];
  nbest(tokens: Token[], n?: number): Labelling[];
}

/** Read the data of a model; an Error unless they are what was written. */
export function verified(text: string, length: number, checksum: number): object;
/** Tagger from the text of a file that `skstruct.export.write_json` made. */
export function parseModel(text: string): Tagger;
