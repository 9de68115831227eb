/** Problems of a configuration: where they are (paths into the file), and their text for people. */

/** The keys and list positions that lead from the top of the file to a value. */
export type Path = readonly (string | number)[];

/** `routes[0].when.model` */
export function pathText(path: Path): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else text += text === '' ? step : `.${step}`;
  }
  return text;
}

/** Something wrong or doubtful at a path of the file, before line and column are known. */
export interface Issue {
  readonly path: Path;
  readonly message: string;
  /** What was probably meant: the right key or value. */
  readonly suggestion?: string;
  /** The issue is with the key, not with its value. */
  readonly key?: boolean;
  /** It says something of the environment of this process, which may not be the gateway's. */
  readonly environment?: boolean;
}

/** The lists into which checks and sections write what they find. */
export interface Findings {
  readonly problems: Issue[];
  readonly warnings: Issue[];
  /** By path (as JSON): the reference that a text came from, as {@link resolveReferences} returns them. */
  readonly origins?: ReadonlyMap<string, string>;
}

/** An issue with its position in the file. */
export interface Problem extends Omit<Issue, 'path' | 'key'> {
  /** `routes[0].when.model`; '' for the file as a whole. */
  readonly path: string;
  /** Both from 1; 0 when the problem has no place in a file. */
  readonly line: number;
  readonly column: number;
}

/** Problems reported for one file; a file that is no configuration can have one for each character. */
export const MAX_PROBLEMS = 100;

/** `unknown key (did you mean "protocol"?)`: what is wrong, without where. */
export function problemText({
  message,
  suggestion,
}: Pick<Problem, 'message' | 'suggestion'>): string {
  if (suggestion === undefined) return message;
  // Where quotes were missing, the suggestion contains them.
  const meant = suggestion.startsWith('"') ? suggestion : `"${suggestion}"`;
  return `${message} (did you mean ${meant}?)`;
}

/** `hopgate.yaml:12:3: providers.glm.protocl: unknown key (did you mean "protocol"?)`. */
export function describeProblem(problem: Problem, file?: string): string {
  const position =
    problem.line > 0
      ? `${file ?? 'configuration'}:${problem.line}:${problem.column}: `
      : file === undefined
        ? ''
        : `${file}: `;
  const path = problem.path === '' ? '' : `${problem.path}: `;
  return `${position}${path}${problemText(problem)}`;
}
