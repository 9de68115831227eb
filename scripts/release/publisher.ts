/** Who publishes this program and where: stated once, in package.json, and read from there for all packages. */

import manifest from '../../package.json' with { type: 'json' };

export interface Publisher {
  /** `Name <address>`, as packages want it. */
  readonly maintainer: string;
  readonly name: string;
  readonly homepage: string;
  /** Of the sources. */
  readonly repository: string;
  /** Where faults are reported. */
  readonly bugs: string;
}

const { author, homepage, repository, bugs } = manifest;

export const PUBLISHER: Publisher = {
  maintainer: `${author.name} <${author.email}>`,
  name: author.name,
  homepage,
  repository: repository.url,
  bugs: bugs.url,
};

/**
 * Which of the fields are still placeholders: their addresses end in
 * `.example`, which RFC 2606 keeps from ever existing.
 */
export const UNNAMED: readonly string[] = Object.entries({
  author: author.email,
  homepage,
  repository: repository.url,
  bugs: bugs.url,
})
  .filter(([, value]) => /\.example(?=[/:]|$)/.test(value))
  .map(([field]) => field);
