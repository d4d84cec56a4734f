import { expect, mock, test } from "bun:test";
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import { createConsoleLimiter } from "../../../src/console/console-limiter.ts";
import type { ConsoleSessions } from "../../../src/console/console-session.ts";
import { RIGHTS, ROLES, type Role, scopeForRole } from "../../../src/console/members/roles.ts";
import { checkRoute } from "../../../src/console/members/route-rules.ts";

test("the README's table of roles matches the code", async () => {
	const paper = await Bun.file(join(import.meta.dir, "../../../src/console/README.md")).text();
	const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |\n`;
	const rows = Object.values(RIGHTS).map(({ says, roles }: { says: string; roles: Partial<Record<Role, string>> }) =>
		line([says, ...ROLES.map((role) => roles[role] ?? "–")]),
	);
	expect(paper).toContain(`${line(["may", ...ROLES])}|${"---|".repeat(ROLES.length + 1)}\n${rows.join("")}`);
});

test("a member whose role this version does not know has no rights", () => {
	expect(scopeForRole("emperor" as Role, "account.see")).toBeUndefined();
});

test("a changing route that is missing in the table requires the password", () => {
	const authenticatedLately = mock();
	const of = () => ({ membership: null, viewer: null });
	const sessions = { authenticatedLately, of } as unknown as ConsoleSessions;
	const limiter = createConsoleLimiter({ clock: systemClock });
	for (const method of ["GET", "POST"])
		checkRoute({ sessions, limiter }, new Request("http://service/", { method }), "/api/console/public/new");
	expect(authenticatedLately).toHaveBeenCalledTimes(1);
});
