/** Types of the data files that are put into the program as they are: the import is their path. */

declare module '*.jsonl' {
  const path: string;
  export default path;
}
