/** Files that Bun embeds into the binary, as their paths (`import font from "x.woff" with { type: "file" }`). */
declare module "*.woff" {
	const path: string;
	export default path;
}
