/** Types of the pages and pictures that are bundled as text. */

declare module '*.md' {
  const text: string;
  export default text;
}

declare module '*.svg' {
  const text: string;
  export default text;
}
