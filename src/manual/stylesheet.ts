export const STYLE = `
:root{color-scheme:light dark;--ink:light-dark(#1c2128,#e2e6ea);--soft:light-dark(#57606a,#9aa4ae);--paper:light-dark(#fff,#14181d);--tint:light-dark(#f4f6f8,#1d232a);--line:light-dark(#d5dbe1,#343c45);--link:light-dark(#0b5cad,#79b8ff);--mark:light-dark(#fff0b3,#4d4420);--key:light-dark(#0a4f96,#8ec5ff);--text:light-dark(#1a6b36,#8fd6a5);--num:light-dark(#8a4b00,#f0b775)}
:root[data-theme=light]{color-scheme:light}:root[data-theme=dark]{color-scheme:dark}
*{box-sizing:border-box}
html{scroll-padding-top:64px}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.6 system-ui,sans-serif;overflow-wrap:break-word}
.skip{position:absolute;left:-999px}.skip:focus{left:8px;top:8px;background:var(--paper);padding:8px;z-index:2}
header{position:sticky;top:0;z-index:1;display:flex;align-items:center;gap:18px;padding:8px 20px;background:var(--paper);border-bottom:1px solid var(--line)}
header a{text-decoration:none;white-space:nowrap}header form{flex:1 1 auto;max-width:420px;margin-right:auto}
header input{width:100%;font:inherit;font-size:15px;color:inherit;background:var(--tint);border:1px solid var(--line);border-radius:6px;padding:5px 10px}
.theme{font:inherit;color:var(--soft);background:none;border:0;padding:2px 6px;cursor:pointer}.theme:hover{color:var(--ink)}
.brand{font-weight:700;color:var(--ink)}.brand small{font-weight:400;color:var(--soft)}.to-contents{display:none}
.frame{display:flex;flex-direction:row-reverse;justify-content:flex-end;gap:40px;max-width:1200px;margin:0 auto;padding:24px 20px 64px}
nav{flex:0 0 196px;font-size:15px;position:sticky;top:56px;align-self:flex-start;max-height:calc(100vh - 56px);overflow-y:auto;padding:2px 4px 24px 2px}nav ul{list-style:none;margin:0;padding:0}
nav h2{font-size:12.5px;margin:16px 0 4px;color:var(--soft);text-transform:uppercase;letter-spacing:.04em}nav h2:first-child{margin-top:0}
nav .within{font-size:13.5px;margin:2px 0 8px;padding-left:12px;border-left:1px solid var(--line)}nav .within li{margin:3px 0}
nav li{margin:4px 0}nav a{text-decoration:none}nav a[aria-current]{font-weight:600;color:var(--ink)}
main{flex:1 1 0;min-width:0;max-width:880px}
h1{font-size:28px;line-height:1.25;margin:0 0 16px}main h2{font-size:21px;margin:36px 0 8px}h3{font-size:17px;margin:28px 0 4px}
h1,h2,h3{text-wrap:balance}main h2 a,h3 a{color:inherit;text-decoration:none}main h2 a:hover,h3 a:hover{text-decoration:underline}
.hits{padding-left:22px}.hits li{margin:14px 0}.hits p{max-width:46em;margin:2px 0;font-size:15px;color:var(--soft)}mark{background:var(--mark);color:var(--ink);border-radius:2px}
a{color:var(--link)}p,ul,ol{margin:10px 0}li{margin:3px 0}
code{font:0.88em ui-monospace,monospace;background:var(--tint);border-radius:3px;padding:1px 4px}
.code{position:relative}pre{background:var(--tint);border:1px solid var(--line);border-radius:6px;padding:12px 14px;overflow-x:auto;line-height:1.45}
pre code{background:none;padding:0;font-size:13.5px}.c{color:var(--soft)}.k{color:var(--key)}.s{color:var(--text)}.n{color:var(--num)}
.copy{position:absolute;top:6px;right:6px;font:12.5px system-ui,sans-serif;color:var(--soft);background:var(--paper);border:1px solid var(--line);border-radius:5px;padding:2px 8px;cursor:pointer}.copy:hover{color:var(--ink)}
.table{overflow-x:auto;margin:12px 0}table{border-collapse:collapse;font-size:15px}
th,td{border-bottom:1px solid var(--line);padding:6px 14px 6px 0;text-align:left;vertical-align:top}td:nth-child(4){min-width:210px}td:nth-child(3):not(:last-child){min-width:150px}td:nth-child(3):nth-last-child(2) code{overflow-wrap:anywhere}td:nth-child(2):nth-last-child(2){min-width:90px;overflow-wrap:anywhere}
th{color:var(--soft);font-weight:600}
blockquote{margin:12px 0;padding:2px 14px;border-left:3px solid var(--line);color:var(--soft)}
img{max-width:100%;height:auto;border:1px solid var(--line);border-radius:6px}
hr{border:0;border-top:1px solid var(--line);margin:28px 0}
footer{display:flex;justify-content:space-between;gap:16px;margin-top:48px;padding-top:16px;border-top:1px solid var(--line)}footer a{text-decoration:none}footer small{display:block;color:var(--soft)}.next{margin-left:auto;text-align:right}
@media (min-width:1001px){wbr{display:none}}
@media (max-width:760px){header{flex-wrap:wrap;gap:6px 16px;padding:8px 16px;position:static}header form{order:9;flex-basis:100%;max-width:none}.brand{margin-right:auto}.to-contents{display:inline}header{column-gap:12px}.brand small{display:none}.frame{display:block;padding:16px}nav{position:static;max-height:none;margin-top:40px;border-top:1px solid var(--line);padding-top:16px}nav a{display:inline-block;padding:5px 0}html{scroll-padding-top:12px}p:has(>img){overflow-x:auto}.stacked,.stacked tbody,.stacked tr,.stacked td{display:block}.stacked thead{display:none}.stacked tr{border-bottom:1px solid var(--line);padding:10px 0}.stacked td{border:0;padding:2px 0;min-width:0}.stacked td:first-child{font-weight:600}.stacked td:empty{display:none}.stacked td[data-label]::before{content:attr(data-label) " ";color:var(--soft);font-size:13px;margin-right:6px}}
@media print{header,nav,footer,.copy{display:none}}
`.trim();
