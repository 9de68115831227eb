/** What is wrong with a configuration, as values that point into the file. */

export interface Problem {
  /** `routes[0].when.model`; '' for the file as a whole. */
  readonly path: string;
  /** From 1; 0 when the problem has no place in a file. */
  readonly line: number;
  /** From 1; 0 when the problem has no place in a file. */
  readonly column: number;
  readonly message: string;
  /** What was probably meant: the right key or value. */
  readonly suggestion?: string;
}

/** More of them help nobody, and a file that is none at all can have one for every character. */
export const MOST_TOLD = 100;

/** `hopgate.yaml:12:3: providers.glm.protocl: unknown key (did you mean "protocol"?)`. */
export function describeProblem(problem: Problem, file?: string): string {
  const place =
    problem.line > 0
      ? `${file ?? 'configuration'}:${problem.line}:${problem.column}: `
      : file === undefined
        ? ''
        : `${file}: `;
  const path = problem.path === '' ? '' : `${problem.path}: `;
  const hint = problem.suggestion === undefined ? '' : ` (did you mean "${problem.suggestion}"?)`;
  return `${place}${path}${problem.message}${hint}`;
}
