/** Rules about the source as functions of its text, so that tests can show what each rule finds. */
import { dirname, join, normalize } from "node:path";
import { parseSync } from "oxc-parser";

/** A source file. Its path starts at the repository's root. */
export interface SourceFile {
	readonly path: string;
	readonly text: string;
}

/**
 * Layers of folders, highest first. A folder imports only from layers below its own, types included, and from at least
 * one folder of the next layer: so each is as low as possible, and the order of layers is unique.
 */
export const LAYERS: readonly (readonly string[])[] = [
	["main"],
	["cli"],
	["planes"],
	["build", "demo", "jobs", "management", "web"],
	["console"],
	["gateway", "secrets"],
	["admission", "batch", "billing", "config", "deployments", "status"],
	["keys", "ledger", "upstream"],
	["catalog", "cluster", "files", "ops"],
	["config-sections", "db", "limits", "money", "traces"],
	["base", "config-table"],
];

const LINES_MAX = 330;
/** Example code for customers, which reads the environment and writes to the terminal when they run it. */
const SHOW_CODE = ["src/demo/banner.ts", "src/web/snippets/chat.ts"];

/** Imports of each file that was already parsed. */
const read = new WeakMap<SourceFile, readonly string[]>();

/** Returns relative imports and re-exports of a file, including types and dynamic imports, as paths from the root. */
export function importsOf(file: SourceFile): readonly string[] {
	const imports = read.get(file) ?? readImports(file);
	read.set(file, imports);
	return imports;
}

function readImports({ path, text }: SourceFile): string[] {
	const code = withoutComments(text);
	const found: string[] = [];
	const patterns = [
		/^\s*(?:import|export)\s+(?:type\s+)?(?:[\w*{][^;"]*?from\s*)"([^"]+)"/gm,
		/^\s*import\s*"([^"]+)"/gm,
		/\b(?:import|require|require\.resolve)\(\s*["'`]([^"'`]+)["'`]/g,
	];
	for (const pattern of patterns) {
		for (const [, specifier = ""] of code.matchAll(pattern)) {
			if (specifier.startsWith(".")) found.push(normalize(join(dirname(path), specifier)));
		}
	}
	return found;
}

/** Finds imports from a higher or the same layer, or from outside the source; files and imports without a layer. */
export function orderProblems(files: readonly SourceFile[], layers = LAYERS): string[] {
	return files.flatMap((file) => {
		const rank = rankOf(file.path, layers);
		if (rank < 0) return [`${file.path} is in no layer`];
		return importsOf(file)
			.filter((target) => !target.startsWith("src/") || folderOf(target) !== folderOf(file.path))
			.flatMap((target) => {
				// This import is allowed: it reads the version.
				if (target === "package.json") return [];
				const below = rankOf(target, layers);
				if (below < 0) return [`${file.path} imports ${target}, which is in no layer`];
				return below > rank ? [] : [`${file.path} imports ${target}`];
			});
	});
}

/** Finds folders that could be in a lower layer, or that do not exist. */
export function layerProblems(files: readonly SourceFile[], layers = LAYERS): string[] {
	const needs = new Map<string, Set<string>>();
	for (const file of files) {
		const folder = folderOf(file.path);
		const of = needs.get(folder) ?? new Set();
		needs.set(folder, of);
		for (const target of importsOf(file)) of.add(folderOf(target));
	}
	return layers.flatMap((line, rank) =>
		line.flatMap((folder) => {
			const of = needs.get(folder);
			if (of === undefined) return [`there is no folder ${folder}`];
			const next = layers[rank + 1];
			if (next === undefined || next.some((name) => of.has(name))) return [];
			return [`${folder} needs nothing of the line below it (${next.join(", ")}) and belongs further down`];
		}),
	);
}

/** Finds import cycles, types included. Each is a list of files. */
export function importCycles(files: readonly SourceFile[]): string[][] {
	const edges = new Map(files.map((file) => [file.path, importsOf(file)]));
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

/** Finds imports of console code by the pages, except of the shared file. */
export function sharedProblems(files: readonly SourceFile[]): string[] {
	const pages = files.filter(({ path }) => folderOf(path) === "web");
	return pages.flatMap((file) =>
		importsOf(file)
			.filter((target) => folderOf(target) === "console" && target !== "src/console/views.ts")
			.map((target) => `${file.path} imports ${target}`),
	);
}

export function environmentProblems(files: readonly SourceFile[]): string[] {
	const read = /\b(process|Bun|import\.meta)(\??\.env\b|(\?\.)?\[)|\bfrom "(node:)?process"/;
	return matches(files, read, ["src/config.ts", ...SHOW_CODE]);
}

export function consoleProblems(files: readonly SourceFile[]): string[] {
	const write = /\bconsole\.\w+\(|\b(process|Bun)\.std(out|err)\b/;
	return matches(files, write, ["src/main.ts", ...SHOW_CODE]);
}

export function lengthProblems(files: readonly SourceFile[]): string[] {
	return files.flatMap(({ path, text }) => {
		const lines = text.replace(/\n$/, "").split("\n").length;
		return lines > LINES_MAX ? [`${path} has ${lines} lines; ${LINES_MAX} is the most`] : [];
	});
}

const CLOSURE_LETS_MAX = 5;

/** Finds functions with many variables that inner functions change, unless they declare states with `createStates`. */
export function stateProblems(files: readonly SourceFile[]): string[] {
	return files.flatMap(({ path, text }) => {
		// This quick check avoids parsing, which takes a hundred times as long.
		if ((text.match(/\blet \w/g)?.length ?? 0) <= CLOSURE_LETS_MAX) return [];
		const problems: string[] = [];
		walkScopes(parseSync(path, text).program, newScope(), ({ node, lets, inner, hasStates }) => {
			const changed = [...lets].filter((name) => inner.has(name));
			if (changed.length > CLOSURE_LETS_MAX && !hasStates)
				problems.push(`${path}: ${nameOf(node?.id) ?? "a function"} changes ${changed.join(", ")}`);
		});
		return problems;
	});
}

interface Scope {
	readonly node: SyntaxNode | undefined;
	readonly lets: Set<string>;
	/** Variables of the function that the function or its inner functions assign. */
	readonly own: Set<string>;
	readonly inner: Set<string>;
	hasStates: boolean;
}

function newScope(node?: SyntaxNode): Scope {
	return { node, lets: new Set(), own: new Set(), inner: new Set(), hasStates: false };
}

interface SyntaxNode {
	readonly type: string;
	readonly id?: unknown;
	readonly kind?: string;
	readonly declarations?: readonly { readonly id: unknown }[];
	readonly callee?: unknown;
	readonly left?: unknown;
	readonly argument?: unknown;
}

function walkScopes(node: unknown, outer: Scope, leave: (scope: Scope) => void): void {
	if (Array.isArray(node)) for (const one of node) walkScopes(one, outer, leave);
	if (typeof node !== "object" || node === null || !("type" in node)) return;
	const syntax = node as SyntaxNode;
	const { type } = syntax;
	const isFunction = ["FunctionDeclaration", "FunctionExpression", "ArrowFunctionExpression"].includes(type);
	const scope = isFunction ? newScope(syntax) : outer;
	if (type === "VariableDeclaration" && syntax.kind === "let")
		for (const { id } of syntax.declarations ?? []) scope.lets.add(nameOf(id) ?? "");
	if (type === "CallExpression" && nameOf(syntax.callee) === "createStates") scope.hasStates = true;
	if (type === "AssignmentExpression") scope.own.add(nameOf(syntax.left) ?? "");
	if (type === "UpdateExpression") scope.own.add(nameOf(syntax.argument) ?? "");
	for (const child of Object.values(syntax)) walkScopes(child, scope, leave);
	if (!isFunction) return;
	leave(scope);
	for (const name of [...scope.own, ...scope.inner]) if (!scope.lets.has(name)) outer.inner.add(name);
}

function nameOf(node: unknown): string | undefined {
	return (node as { readonly name?: string } | null | undefined)?.name;
}

/** Finds rooms above their line budget or without one. `budget`: lines by room; `top` is the files of `src` itself. */
export function budgetProblems(files: readonly SourceFile[], budget: ReadonlyMap<string, number>): string[] {
	const lines = new Map<string, number>();
	for (const { path, text } of files) {
		const [, room = "", rest] = path.split("/");
		const name = rest === undefined ? "top" : room;
		lines.set(name, (lines.get(name) ?? 0) + text.split("\n").length - 1);
	}
	const missing = [...budget.keys()].filter((room) => !lines.has(room)).map((room) => `there is no room ${room}`);
	const over = [...lines].flatMap(([room, count]) => {
		const most = budget.get(room);
		if (most === undefined) return [`${room} has no budget`];
		return count > most ? [`${room} has ${count} lines; its budget is ${most}`] : [];
	});
	return [...missing, ...over];
}

const BANNED =
	/\b(anew|meanwhile|(?:is|are) told|stands in|(?:comes|came) of|lets go|somebody|nobody|whoever|hears|that is so|beside)\b/i;

/** Finds words that CONTRIBUTING.md forbids, in comments of sources and in Markdown outside of code blocks. */
export function wordProblems(files: readonly SourceFile[]): string[] {
	return files.flatMap(({ path, text }) => {
		let isCode = false;
		return text.split("\n").flatMap((line, at) => {
			if (path.endsWith(".md") && line.startsWith("```")) isCode = !isCode;
			const isRead = path.endsWith(".md") ? !isCode : /^\s*(\/\/|\/?\*|--(?!>))/.test(line);
			const word = isRead ? BANNED.exec(line.replaceAll(/`[^`]*`/g, ""))?.[0] : undefined;
			return word === undefined ? [] : [`${path}:${at + 1}: ${word}`];
		});
	});
}

/** Finds files that only re-export, which hide dependencies, and utility files, which grow without limit. */
export function nameProblems(files: readonly SourceFile[]): string[] {
	return files.map(({ path }) => path).filter((path) => /(^|\/)(index|utils?|helpers?|common|misc)\.tsx?$/.test(path));
}

/** Finds what the repository must not publish: addresses of package registries, and paths of a developer's machine. */
export function placeProblems(files: readonly SourceFile[]): string[] {
	const registry = /\bregistry\.[a-z0-9-]+\.[a-z]{2,}|npmmirror|verdaccio|\/-\/[\w.-]+\.tgz/;
	const machine = /(^|[\s"'`(=:])\/(work|home|root|Users|tmp\/bun)\/[\w.-]/m;
	return files.flatMap(({ path, text }) => {
		const found = registry.exec(text) ?? machine.exec(text);
		return found === null ? [] : [`${path}: ${JSON.stringify(found[0].trim())}`];
	});
}

/** Returns cells of the Markdown table after `heading`, without the header row and code marks. */
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
 * Finds files and folders that a Markdown file names in code marks or links and that do not exist. A name is a path if
 * it ends like a source file, or begins with `src/` or `test/`. Paths may be relative to the Markdown file or the root.
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

export function codeBlocks(text: string, language: string): string[] {
	return [...text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "gm"))].map(
		(match) => match[1] as string,
	);
}

/** Returns the folder below `src`, or the file's name for a file in `src` itself. */
function folderOf(path: string): string {
	return /^src\/([^/.]+)/.exec(path)?.[1] ?? "";
}

function rankOf(path: string, layers: readonly (readonly string[])[]): number {
	return layers.findIndex((names) => names.includes(folderOf(path)));
}

function matches(files: readonly SourceFile[], pattern: RegExp, except: readonly string[]): string[] {
	return files
		.filter(({ path }) => !except.includes(path))
		.flatMap(({ path, text }) => {
			const found = pattern.exec(withoutComments(text));
			return found === null ? [] : [`${path}: ${found[0]}`];
		});
}

/** Removes comments. Expects formatted source, in which a comment begins a line or follows a space. */
function withoutComments(text: string): string {
	return text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/(^|\s)\/\/[^\n]*/g, "$1");
}

const PAPER_LINES_MAX = 250;
const PAPER_CHARS_MAX = 120;

/** Finds Markdown files and lines that are too long. Tables, code and lines with links may be longer. */
export function paperProblems(papers: readonly SourceFile[]): string[] {
	return papers.flatMap(({ path, text }) => {
		const lines = text.replace(/\n$/, "").split("\n");
		let isCode = false;
		const wide = lines.flatMap((line, at) => {
			if (line.startsWith("```")) isCode = !isCode;
			const mayBeWide = isCode || /^(\||\t| {4})|\]\(|https?:/.test(line);
			return line.length > PAPER_CHARS_MAX && !mayBeWide ? [`${path}:${at + 1} has ${line.length} characters`] : [];
		});
		return lines.length > PAPER_LINES_MAX ? [`${path} has ${lines.length} lines`, ...wide] : wide;
	});
}
