import { expect, mock, test } from "bun:test";
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import { createConsoleLimiter } from "../../../src/console/console-limiter.ts";
import type { ConsoleSessions } from "../../../src/console/console-session.ts";
import {
	RIGHTS,
	type Right,
	ROLES,
	type Role,
	roleHasRight,
	scopeForRole,
} from "../../../src/console/members/roles.ts";
import { checkRoute, ROUTE_RULES } from "../../../src/console/members/route-rules.ts";

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

/** Routes of the person, and by role the parts of the console without a permitted route (`see`: GET routes). */
const OWN =
	"GET /me, POST /terms, PUT /language, POST /reauthenticate, GET /sessions, GET /passkeys, DELETE /passkeys/:id, " +
	"DELETE /sessions/:id, POST /sessions/revoke-others, POST /invitations/accept, GET /live";
const CLOSED: Readonly<Record<Role, string>> = {
	owner: "",
	admin: "see company-sign-in, company-sign-in",
	developer:
		"see company-sign-in, company-sign-in, account, invitations, members, see alert, alert, projects, see credit, credit, batch-notices",
	billing:
		"see company-sign-in, company-sign-in, account, invitations, members, keys, projects, batches, batch-notices",
	viewer:
		"see company-sign-in, company-sign-in, account, invitations, members, alert, keys, projects, credit, batches, batch-notices",
};

test("each role may use exactly the listed parts of the console", () => {
	const rules = Object.entries(ROUTE_RULES).map(([route, rule]) => {
		const [method, part] = route.split(/[ /.]+/);
		return { route, part: method === "GET" ? `see ${part}` : part, who: typeof rule === "string" ? rule : rule[0] };
	});
	const own = rules.filter(({ who }) => who === "person" || who === "anybody");
	expect(own.map(({ route }) => route).join(", ")).toBe(OWN);
	const others = rules.filter(({ who }) => who in RIGHTS);
	const partsOf = (routes: typeof rules) => new Set(routes.map(({ part }) => part));
	for (const role of ROLES) {
		const open = partsOf(others.filter(({ who }) => roleHasRight(role, who as Right)));
		expect([role, [...partsOf(others).difference(open)].join(", ")]).toEqual([role, CLOSED[role]]);
	}
});

test("a route for changes that the table of rights lacks requires the password", () => {
	const authenticatedLately = mock();
	const of = () => ({ membership: null, viewer: null });
	const sessions = { authenticatedLately, of } as unknown as ConsoleSessions;
	const limiter = createConsoleLimiter({ clock: systemClock });
	for (const method of ["GET", "POST"])
		checkRoute({ sessions, limiter }, new Request("http://service/", { method }), "/api/console/public/new");
	expect(authenticatedLately).toHaveBeenCalledTimes(1);
});
