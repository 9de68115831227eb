/** The style sheet of the manual, for light and dark themes, from phones to wide screens. */

export const STYLE = `
:root{color-scheme:light dark;--ink:#1c2128;--soft:#57606a;--paper:#fff;--tint:#f4f6f8;--line:#d5dbe1;--link:#0b5cad;--mark:#fff0b3}
@media (prefers-color-scheme:dark){:root{--ink:#e2e6ea;--soft:#9aa4ae;--paper:#14181d;--tint:#1d232a;--line:#343c45;--link:#79b8ff;--mark:#4d4420}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.6 system-ui,sans-serif;overflow-wrap:break-word}
.skip{position:absolute;left:-999px}.skip:focus{left:8px;top:8px;background:var(--paper);padding:8px}
.frame{display:flex;gap:40px;max-width:1200px;margin:0 auto;padding:24px 20px 64px}
nav{flex:0 0 196px;font-size:15px;position:sticky;top:0;align-self:flex-start;max-height:100vh;overflow-y:auto;padding:2px 4px 24px 2px}nav ul{list-style:none;margin:0;padding:0}
nav .within{font-size:13.5px;margin:2px 0 8px;padding-left:12px;border-left:1px solid var(--line)}nav .within li{margin:3px 0}
nav input{width:100%;font:inherit;color:inherit;background:var(--paper);border:1px solid var(--line);border-radius:6px;padding:5px 9px;margin:0 0 10px}
nav li{margin:6px 0}nav a{text-decoration:none}nav a[aria-current]{font-weight:600;color:var(--ink)}
main{flex:1 1 0;min-width:0;max-width:880px}
h1{font-size:28px;line-height:1.25;margin:0 0 16px}h2{font-size:21px;margin:36px 0 8px}h3{font-size:17px;margin:28px 0 4px}
h1,h2,h3{text-wrap:balance}h2,h3{scroll-margin-top:16px}h2 a,h3 a{color:inherit;text-decoration:none}h2 a:hover,h3 a:hover{text-decoration:underline}
.hits{padding-left:22px}.hits li{margin:14px 0}.hits p{margin:2px 0;font-size:15px;color:var(--soft)}mark{background:var(--mark);color:var(--ink);border-radius:2px}
a{color:var(--link)}p,ul,ol{margin:10px 0}li{margin:3px 0}
code{font:0.88em ui-monospace,monospace;background:var(--tint);border-radius:3px;padding:1px 4px}
pre{background:var(--tint);border:1px solid var(--line);border-radius:6px;padding:12px 14px;overflow-x:auto;line-height:1.45}
pre code{background:none;padding:0;font-size:13.5px}
.table{overflow-x:auto;margin:12px 0}table{border-collapse:collapse;font-size:15px}
th,td{border-bottom:1px solid var(--line);padding:6px 14px 6px 0;text-align:left;vertical-align:top}td:nth-child(4){min-width:210px}td:nth-child(3):not(:last-child){min-width:120px}
th{color:var(--soft);font-weight:600}
blockquote{margin:12px 0;padding:2px 14px;border-left:3px solid var(--line);color:var(--soft)}
img{max-width:100%;height:auto;border:1px solid var(--line);border-radius:6px}
hr{border:0;border-top:1px solid var(--line);margin:28px 0}
@media (max-width:760px){.frame{display:block;padding:16px}nav{position:static;max-height:none;margin-bottom:20px;border-bottom:1px solid var(--line);padding-bottom:10px}nav ul{display:flex;flex-wrap:wrap;gap:2px 14px}nav .within{display:none}p:has(>img){overflow-x:auto}p>img{width:680px;max-width:none}td code{white-space:nowrap}}
@media print{nav{display:none}}
`.trim();
