/** Files that the bundler embeds: snippets as text, docs as elements (`bundle.ts`). */
declare module "*.py" {
	const text: string;
	export default text;
}
declare module "*.mjs" {
	const text: string;
	export default text;
}
declare module "*.go" {
	const text: string;
	export default text;
}
declare module "*.java" {
	const text: string;
	export default text;
}
declare module "*.pom" {
	const text: string;
	export default text;
}
declare module "*.md" {
	const nodes: readonly import("./docs/docs.tsx").DocsNode[];
	export default nodes;
}
