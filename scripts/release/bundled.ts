/** A package that is inside the executable, with its licence. */

export interface Bundled {
  readonly name: string;
  readonly version: string;
  /** An SPDX expression. */
  readonly license: string;
  /** The licence file's text, '' where the package has none. */
  readonly text: string;
}
