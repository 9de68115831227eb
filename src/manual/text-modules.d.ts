/** Types of the pages and pictures that are bundled: texts, and paths of binary files. */

declare module '*.svg' {
  const text: string;
  export default text;
}

declare module '*.png' {
  const path: string;
  export default path;
}
