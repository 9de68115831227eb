/** What setting up a client means: from a file's text to a new text, and back. */

import type { Environment } from '../../../config/environment.ts';
import type { Json } from '../../../lib/json/json.ts';

/** What is to be written, independent of the client. */
export interface Plan {
  /** `http://127.0.0.1:5520`, without a slash at the end. */
  readonly url: string;
  /** A key that the gateway takes; undefined when it asks for none. */
  readonly key: string | undefined;
  /** The model to ask for; undefined: the client keeps its own names, which the routes map. */
  readonly model: string | undefined;
  /** The model that answers, under whatever name it is asked for; undefined when nobody can tell. */
  readonly answering: string | undefined;
  /** The model for small side jobs; the same as `model` when left out. */
  readonly smallModel: string | undefined;
  /** Every model the gateway names. */
  readonly models: readonly string[];
  /** Context window in tokens of the model that answers; undefined when nobody knows. */
  readonly context: number | undefined;
  /** `--protocol`, for clients that speak several. */
  readonly protocol: string | undefined;
  /** The user named the model: it becomes the client's default. */
  readonly modelChosen: boolean;
}

/** The value a member had before; `before` left out: it was not there. */
export interface Undo {
  readonly path: readonly string[];
  readonly before?: Json;
  readonly after: Json;
}

export interface Change {
  readonly text: string;
  /** What `strip` needs to take the change out of a file that was edited since. */
  readonly undo: readonly Undo[];
}

export interface Client {
  readonly name: string;
  readonly title: string;
  /** The file to change. */
  file(environment: Environment): string;
  /** @throws Error with words for a person when the file cannot be changed safely */
  apply(text: string | undefined, plan: Plan): Change;
  strip(text: string, undo: readonly Undo[]): string;
  /** What else the user should know, a sentence each. */
  hints(plan: Plan, text: string | undefined): readonly string[];
}
