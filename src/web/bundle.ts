/**
 * Bundles the console's pages into a folder: `bun src/web/bundle.ts FOLDER`. A separate process, because bundling would
 * block a service that runs from source. Converts the docs' Markdown to elements here, so that browsers need no
 * Markdown parser.
 */
import { join } from "node:path";
import type { BunPlugin } from "bun";

const markdown: BunPlugin = {
	name: "markdown",
	setup(build) {
		build.onLoad({ filter: /\.md$/ }, async ({ path }) => {
			const page = Bun.markdown.react(await Bun.file(path).text());
			return { loader: "json", contents: JSON.stringify((page.props as { children: unknown }).children) };
		});
	},
};

await Bun.build({
	entrypoints: [join(import.meta.dir, "index.html"), join(import.meta.dir, "german-texts.ts")],
	outdir: process.argv[2] ?? "dist/pages",
	target: "browser",
	minify: true,
	splitting: true,
	define: { [["process", "env", "NODE_ENV"].join(".")]: "'production'" },
	publicPath: "/assets/",
	naming: { entry: "[name]-[hash].[ext]", chunk: "[name]-[hash].[ext]" },
	plugins: [markdown],
});
