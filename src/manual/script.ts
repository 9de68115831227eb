/** The only script of the manual: the reader's theme, chosen here or at /ui, and buttons that copy code. */

// Without it the pages work as well, in the theme of the system.
export const SCRIPT = `
const THEMES = ['system', 'light', 'dark'];
let theme;
try {
  theme = localStorage.getItem('hopgate-theme');
} catch {
  // The browser keeps nothing: a choice holds for this page.
}
const apply = () => {
  if (THEMES.indexOf(theme) < 1) delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  for (const source of document.querySelectorAll('picture source')) {
    source.media = ['(prefers-color-scheme: dark)', 'not all', 'all'][Math.max(0, THEMES.indexOf(theme))];
  }
};
// Before anything is drawn.
apply();
addEventListener('DOMContentLoaded', () => {
  const choice = document.querySelector('.theme');
  const draw = () => {
    const at = Math.max(0, THEMES.indexOf(theme));
    choice.textContent = '\u25d0\u2600\u263e'[at];
    choice.title = choice.dataset.names.split('|')[at];
    choice.setAttribute('aria-label', choice.title);
  };
  choice.hidden = false;
  apply();
  draw();
  choice.addEventListener('click', () => {
    theme = THEMES[(Math.max(0, THEMES.indexOf(theme)) + 1) % THEMES.length];
    try {
      if (theme === 'system') localStorage.removeItem('hopgate-theme');
      else localStorage.setItem('hopgate-theme', theme);
    } catch {
      // As above.
    }
    apply();
    draw();
  });
  for (const button of document.querySelectorAll('.copy')) {
    button.hidden = false;
    button.addEventListener('click', async () => {
      const code = button.parentElement.querySelector('code');
      try {
        await navigator.clipboard.writeText(code.textContent.trimEnd());
      } catch {
        // Pages of other machines without https have no clipboard: the block is selected instead.
        getSelection().selectAllChildren(code);
        return;
      }
      const label = button.textContent;
      button.textContent = button.dataset.done;
      setTimeout(() => { button.textContent = label; }, 1500);
    });
  }
});
`.trim();
