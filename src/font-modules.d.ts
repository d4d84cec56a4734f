/** Imports of font files, which Bun embeds into the binary (`import font from "x.ttf" with { type: "file" }`). */
declare module "*.ttf" {
	const path: string;
	export default path;
}
