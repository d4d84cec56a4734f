/** Rules about the text of the source, as plain functions, so that each can be shown to find what it forbids. */
import { dirname, join, normalize } from "node:path";

/** A file by its path from the repository's root. */
export interface SourceFile {
	readonly path: string;
	readonly text: string;
}

/** Highest first. A folder may import values from folders below it; those of one line not from each other. */
const LAYERS: readonly (readonly string[])[] = [
	["main"],
	["cli"],
	["app"],
	["server"],
	["secrets"],
	["config"],
	["console", "batch", "demo"],
	["gateway"],
	["status"],
	["billing"],
	["admission"],
	["ledger"],
	["keys"],
	["limits"],
	["upstream"],
	["catalog"],
	["cluster"],
	["ops"],
	["db"],
	["money"],
	["base"],
];

const LINES_MAX = 330;
/** Snippets that they show read the environment and write to the terminal; the files themselves do neither. */
const SHOW_CODE = ["src/demo/banner.ts", "src/console/web/snippets.ts"];

interface Import {
	/** Path from the repository's root. */
	readonly target: string;
	readonly typeOnly: boolean;
}

/** Relative imports and re-exports of a file, `import()` too. */
export function importsOf({ path, text }: SourceFile): Import[] {
	const code = withoutComments(text);
	const found: Import[] = [];
	const add = (specifier: string, typeOnly: boolean) => {
		if (specifier.startsWith(".")) found.push({ target: normalize(join(dirname(path), specifier)), typeOnly });
	};
	for (const match of code.matchAll(/^\s*(?:import|export)\s+(type\s+)?(?:[\w*{][^;"]*?from\s*)"([^"]+)"/gm)) {
		add(match[2] as string, match[1] !== undefined);
	}
	for (const match of code.matchAll(/^\s*import\s*"([^"]+)"/gm)) add(match[1] as string, false);
	for (const match of code.matchAll(/\bimport\(\s*"([^"]+)"/g)) add(match[1] as string, false);
	return found;
}

/** Imports that go up, or sideways between folders of one layer. Types may be imported from anywhere, except by `base`. */
export function orderProblems(files: readonly SourceFile[]): string[] {
	return files.flatMap((file) => {
		const from = layerOf(file.path);
		if (from === undefined) return [`${file.path} is in no layer`];
		return importsOf(file)
			.filter(({ target }) => target.startsWith("src/"))
			.flatMap(({ target, typeOnly }) => {
				const to = layerOf(target);
				if (to === undefined) return [`${file.path} imports ${target}, which is in no layer`];
				if (to.name === from.name || to.rank > from.rank || (typeOnly && from.name !== "base")) return [];
				return [`${file.path} imports ${target}`];
			});
	});
}

/** Circles of value imports, each as the list of its files. */
export function importCycles(files: readonly SourceFile[]): string[][] {
	const known = new Set(files.map(({ path }) => path));
	const edges = new Map(
		files.map((file) => [
			file.path,
			importsOf(file)
				.filter(({ target, typeOnly }) => !typeOnly && known.has(target))
				.map(({ target }) => target),
		]),
	);
	const cycles: string[][] = [];
	const done = new Set<string>();
	const walk = (path: string, trail: string[]) => {
		const at = trail.indexOf(path);
		if (at >= 0) {
			cycles.push(trail.slice(at));
			return;
		}
		if (done.has(path)) return;
		for (const target of edges.get(path) ?? []) walk(target, [...trail, path]);
		done.add(path);
	};
	for (const { path } of files) walk(path, []);
	return cycles;
}

export function environmentProblems(files: readonly SourceFile[]): string[] {
	return matches(files, /\b(process|Bun|import\.meta)\??\.env\b/, ["src/config.ts", ...SHOW_CODE]);
}

export function consoleProblems(files: readonly SourceFile[]): string[] {
	return matches(files, /\bconsole\.\w+\(|\bprocess\.std(out|err)\b/, ["src/main.ts", ...SHOW_CODE]);
}

export function lengthProblems(files: readonly SourceFile[]): string[] {
	return files.flatMap(({ path, text }) => {
		const lines = text.replace(/\n$/, "").split("\n").length;
		return lines > LINES_MAX ? [`${path} has ${lines} lines; ${LINES_MAX} is the most`] : [];
	});
}

/** Barrels hide who needs what, and grab-bags grow without end. */
export function nameProblems(files: readonly SourceFile[]): string[] {
	return files.map(({ path }) => path).filter((path) => /(^|\/)(index|utils?|helpers?|common|misc)\.tsx?$/.test(path));
}

/** Where packages come from and where somebody's checkout lies is the business of neither code nor lock file. */
export function placeProblems(files: readonly SourceFile[]): string[] {
	const registry = /\bregistry\.[a-z0-9-]+\.[a-z]{2,}|npmmirror|verdaccio|\/-\/[\w.-]+\.tgz/;
	const machine = /(^|[\s"'`(=:])\/(work|home|root|Users|tmp\/bun)\/[\w.-]/m;
	return files.flatMap(({ path, text }) => {
		const found = registry.exec(text) ?? machine.exec(text);
		return found === null ? [] : [`${path}: ${JSON.stringify(found[0].trim())}`];
	});
}

/** The cells of the Markdown table that follows `heading`, without its head; code marks are taken off. */
export function markdownTable(text: string, heading: string): string[][] {
	const lines = text.slice(text.indexOf(`\n${heading}\n`)).split("\n");
	const first = lines.findIndex((line) => line.startsWith("|"));
	const rows = lines.slice(first).slice(
		0,
		lines.slice(first).findIndex((line) => !line.startsWith("|")),
	);
	return rows.slice(2).map((row) =>
		row
			.split(/(?<!\\)\|/)
			.slice(1, -1)
			.map((cell) => cell.trim().replaceAll("`", "").replaceAll("\\|", "|")),
	);
}

/**
 * Files and folders that a paper names in code marks or links to and that do not exist. A name counts as a path if it
 * ends as our sources do, or begins in `src/` or `test/`; it is looked for beside the paper and from the root.
 */
export function missingPaths({ path, text }: SourceFile, exists: (path: string) => boolean): string[] {
	const named = [...text.matchAll(/`([\w./-]+)`/g)]
		.map((match) => match[1] as string)
		.filter((name) => /\.(tsx?|sql|md|webp)$|^(src|test)\//.test(name));
	const linked = [...text.matchAll(/\]\(([^)#\s]+)/g)]
		.map((match) => match[1] as string)
		.filter((target) => !/^[a-z]+:/.test(target));
	return [...named, ...linked].flatMap((name) => {
		const beside = normalize(join(dirname(path), name)).replace(/\/$/, "");
		const fromRoot = normalize(name).replace(/\/$/, "");
		if (exists(beside) || exists(fromRoot)) return [];
		return [`${path} names ${/^(src|test)\//.test(name) ? fromRoot : beside}`];
	});
}

/** The fenced blocks of a language. */
export function codeBlocks(text: string, language: string): string[] {
	return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "gm"))].map(
		(match) => match[1] as string,
	);
}

function layerOf(path: string): { name: string; rank: number } | undefined {
	const name = /^src\/([^/.]+)/.exec(path)?.[1] ?? "";
	const rank = LAYERS.findIndex((names) => names.includes(name));
	return rank < 0 ? undefined : { name, rank };
}

function matches(files: readonly SourceFile[], pattern: RegExp, except: readonly string[]): string[] {
	return files
		.filter(({ path }) => !except.includes(path))
		.flatMap(({ path, text }) => {
			const found = pattern.exec(withoutComments(text));
			return found === null ? [] : [`${path}: ${found[0]}`];
		});
}

/** Good enough for source that the formatter has laid out: comments begin a line or follow a blank. */
function withoutComments(text: string): string {
	return text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/(^|\s)\/\/[^\n]*/g, "$1");
}
