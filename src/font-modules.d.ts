/** Files that Bun embeds into the binary, as their paths (`import font from "x.ttf" with { type: "file" }`). */
declare module "*.ttf" {
	const path: string;
	export default path;
}
