import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";

const WEB = join(import.meta.dir, "../../src/web");
const LIBRARY = join(import.meta.dir, "../../node_modules/@mantine/core/styles");

test("every Mantine component in use has its style sheet", () => {
	const styles = readFileSync(join(WEB, "styles/mantine.css"), "utf8");
	const used = new Set<string>();
	for (const path of new Glob("**/*.tsx").scanSync(WEB)) {
		const text = readFileSync(join(WEB, path), "utf8");
		for (const [, names = ""] of text.matchAll(/import \{([^}]*)\} from "@mantine\/core"/g))
			for (const name of names.split(",")) used.add(name.trim());
	}
	expect(used.has("Button")).toBe(true);
	const missing = [...used].filter(
		(name) => existsSync(join(LIBRARY, `${name}.css`)) && !styles.includes(`/styles/${name}.css"`),
	);
	expect(missing).toEqual([]);
});
