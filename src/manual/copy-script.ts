/** The only script of the manual: the buttons that copy a block of code. Without it the pages work as well. */

export const SCRIPT = `
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
`.trim();
