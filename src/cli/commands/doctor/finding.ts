/** One thing that the doctor looked at. */

export interface Finding {
  /** `config`, `home`, `port`, `files`, or `provider NAME`. */
  readonly about: string;
  readonly status: 'ok' | 'warn' | 'fail' | 'skip';
  /** What was found, in words; never holds a secret. */
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
