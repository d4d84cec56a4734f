import { expect, test } from "bun:test";
import { join } from "node:path";
import { GIVEN_ROLES, may, RIGHTS, ROLES, type Role, scopeOf } from "../../../src/console/members/roles.ts";

test("the paper of the console shows the table of roles as it is", async () => {
	const paper = await Bun.file(join(import.meta.dir, "../../../src/console/README.md")).text();
	const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |\n`;
	const rows = Object.values(RIGHTS).map(({ says, roles }: { says: string; roles: Partial<Record<Role, string>> }) =>
		line([says, ...ROLES.map((role) => roles[role] ?? "–")]),
	);
	expect(paper).toContain(`${line(["may", ...ROLES])}|${"---|".repeat(ROLES.length + 1)}\n${rows.join("")}`);
});

test("who was a member may what he could, nobody is made one, and a role of another version may nothing", () => {
	const could = Object.keys(RIGHTS).filter((right) => may("member", right as keyof typeof RIGHTS));
	expect(could).toEqual([
		"account.see",
		"keys.see",
		"keys.change",
		"projects.see",
		"requests.send",
		"credit.see",
		"credit.buy",
	]);
	expect(GIVEN_ROLES as readonly string[]).not.toContain("member");
	expect(scopeOf("emperor" as Role, "account.see")).toBeUndefined();
});
