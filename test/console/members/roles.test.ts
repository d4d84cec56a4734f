import { expect, test } from "bun:test";
import { join } from "node:path";
import { RIGHTS, ROLES, type Role, scopeOf } from "../../../src/console/members/roles.ts";

test("the README's table of roles matches the code", async () => {
	const paper = await Bun.file(join(import.meta.dir, "../../../src/console/README.md")).text();
	const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |\n`;
	const rows = Object.values(RIGHTS).map(({ says, roles }: { says: string; roles: Partial<Record<Role, string>> }) =>
		line([says, ...ROLES.map((role) => roles[role] ?? "–")]),
	);
	expect(paper).toContain(`${line(["may", ...ROLES])}|${"---|".repeat(ROLES.length + 1)}\n${rows.join("")}`);
});

test("a role of another version has no rights", () => {
	expect(scopeOf("emperor" as Role, "account.see")).toBeUndefined();
});
