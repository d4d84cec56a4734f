export const STATUS_STYLE = `
:root {
	color-scheme: light dark;
	--page: light-dark(#fff, #15181b);
	--text: light-dark(#1f2328, #d5d9dd);
	--dim: light-dark(#586069, #9aa4ad);
	--line: light-dark(#dfe3e6, #30363c);
	--link: light-dark(#17637f, #7bb9d0);
	--up: light-dark(#00855f, #2fae86);
	--degraded: light-dark(#a86a00, #dba136);
	--partly: light-dark(#c04f15, #ec8450);
	--down: light-dark(#a1161f, #ff6b6b);
	--none: light-dark(#8d969e, #6a737b);
	font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
	background: var(--page);
	color: var(--text);
}
* { box-sizing: border-box; }
body { max-width: 56rem; margin: 0 auto; padding: 1rem 1rem 3rem; }
a { color: var(--link); }
nav { display: flex; gap: 1.25rem; }
h1 { font-size: 1.35rem; margin: 2rem 0 .25rem; }
h2 { font-size: 1rem; margin: 2.5rem 0 .25rem; }
h3 { font-size: 1rem; font-weight: 500; margin: 0; overflow-wrap: anywhere; }
p { margin: 0; }
ul, ol { list-style: none; margin: 0; padding: 0; }
.dim, .scale, summary, details, h3 small { color: var(--dim); }
h3 small { font-size: .87em; font-weight: 400; }
.parts > li { padding: .75rem 0; border-top: 1px solid var(--line); }
.title { display: flex; justify-content: space-between; align-items: baseline; gap: 1rem; }
.state { white-space: nowrap; }
.state::before { margin-right: .4rem; }
.good::before { content: "●"; color: var(--up); }
.fair::before { content: "◐"; color: var(--degraded); }
.bad::before { content: "○"; color: var(--partly); }
.days { position: relative; display: flex; align-items: flex-end; gap: 2px; height: 2rem; margin-top: .5rem; }
.days > li { flex: 1; height: 100%; display: flex; align-items: flex-end; min-width: 0; }
.days > li::before, .swatch::before {
	content: "";
	display: block;
	width: 100%;
	border-radius: 1px;
	forced-color-adjust: none;
}
.up::before { height: 100%; background: var(--up); }
.degraded::before { height: 76%; background: var(--degraded); }
.partly::before { height: 52%; background: var(--partly); }
.down::before { height: 100%; background: repeating-linear-gradient(var(--down) 0 4px, transparent 4px 6px); }
.none::before { height: 2px; background: var(--none); }
.days > li:hover::before { filter: brightness(1.25); }
.days > li > span {
	position: absolute;
	width: 1px;
	height: 1px;
	overflow: hidden;
	clip-path: inset(50%);
	white-space: nowrap;
}
.days > li:hover > span {
	z-index: 1;
	top: calc(100% + .15rem);
	left: 0;
	width: 100%;
	height: auto;
	clip-path: none;
	padding: .1rem .5rem;
	border-radius: 3px;
	background: var(--text);
	color: var(--page);
	font-size: .87rem;
	text-align: center;
	white-space: normal;
	pointer-events: none;
}
.scale { display: flex; justify-content: space-between; gap: 1rem; margin-top: .25rem; font-size: .87rem; font-variant-numeric: tabular-nums; }
details { margin-top: .25rem; font-size: .87rem; font-variant-numeric: tabular-nums; }
summary { cursor: pointer; width: fit-content; }
details ul { padding: .25rem 0 0 1.1rem; }
.legend { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; margin: .5rem 0 1rem; }
.legend li { display: flex; align-items: flex-end; gap: .5rem; }
.swatch { display: flex; align-items: flex-end; width: .6rem; height: 1.4rem; }
.narrow { display: none; }
@media (max-width: 40rem) {
	.narrow { display: inline; }
	.wide { display: none; }
	.days > li:nth-child(-n+60) { display: none; }
	.days { gap: 3px; }
	.scale { gap: .5rem; font-size: .8rem; }
}
`;
