/** The result of one check of `hopgate doctor`. */

export interface Finding {
  /** `config`, `home`, `port`, `files`, `models`, `engine NAME`, `state`, `mcp NAME`, `tool NAME` or `provider NAME`. */
  readonly about: string;
  readonly status: 'ok' | 'warn' | 'fail' | 'skip';
  /** What was found; never holds a secret. */
  readonly message: string;
  /** What to do about it. */
  readonly hint?: string;
}

export const finding = (
  about: string,
  status: Finding['status'],
  message: string,
  hint?: string,
): Finding => (hint === undefined ? { about, status, message } : { about, status, message, hint });
