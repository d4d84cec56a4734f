import { expect, test } from "bun:test";
import { isTypedName } from "../../src/web/parts/dialog.tsx";

test("the confirmation field accepts a name typed as it appears on the screen", () => {
	for (const [name, typed] of [
		[" made by a script ", "made by a script"],
		["two  spaces", "two spaces"],
		["no\u{a0}break", "no break"],
		["\u{202e}turned\u{200b}", "turned"],
		["Mu\u{308}ller", "Müller"],
	] as const)
		expect(isTypedName(typed, name), JSON.stringify(name)).toBe(true);
	expect([isTypedName("", "search"), isTypedName("Search", "search"), isTypedName("search", "search-api")]).toEqual([
		false,
		false,
		false,
	]);
});
