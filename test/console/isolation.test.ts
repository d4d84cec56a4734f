import { expect, test } from "bun:test";
import { createConsoleApi } from "../../src/console/console-api.ts";
import type { ConsoleParts } from "../../src/console/console-deps.ts";
import { type Right, ROLES, type Role, roleHasRight } from "../../src/console/members/roles.ts";
import { ROUTE_RULES } from "../../src/console/members/route-rules.ts";
import { LONG } from "../support/long-form.ts";
import { withChat } from "../support/service.ts";
import { waitFor } from "../support/wait.ts";
import { mailedLink, newPerson, operator, PASSWORD, PERSON_ENV, type Person, signedUp, topUp } from "./person.ts";

/** Ids of Ann's objects, by the name of the path parameter. */

const { service } = await withChat({ dialect: "vllm", env: PERSON_ENV });
const ann = await signedUp(service);
const bob = await signedUp(service);
const boss = await operator(service);
const topUpId = await topUp(ann, boss);
const made = (await ann.send("POST", "/api/console/keys", { name: "hers" })).body;
const project = (await ann.send("POST", "/api/console/projects", { name: "hers" })).body;
const body = { model: "test-model", messages: [{ role: "user", content: "hi" }] };
const used = await service.post("/v1/chat/completions", made.secret, body);
await used.text();
const refused = await service.post("/v1/chat/completions", made.secret, { ...body, model: "none" });
await refused.text();
await service.settled();
const me = (await ann.get("/api/console/me")).body;
const invited = await ann.send("POST", "/api/console/invitations", { email: "x@example.com", role: "developer" });
const hers = {
	key: made.key.id,
	project: project.id as string,
	topUp: topUpId,
	request: used.headers.get("x-request-id") ?? "",
	refused: refused.headers.get("x-request-id") ?? "",
	session: me.session.id,
	invitation: invited.body.id,
	user: me.user.id,
};

interface Route {
	readonly method: string;
	readonly path: string;
}

/** The bodies are valid, so that only the caller's rights decide the answer. */
const BODIES: Record<string, unknown> = {
	"PATCH /account": { name: "taken" },
	"POST /invitations": { email: "y@example.com", role: "viewer" },
	"POST /invitations/accept": { token: "0123456789012345678901234567890" },
	"PATCH /members/:userId": { role: "viewer" },
	"PUT /alert": { usd: "5" },
	"PUT /company-sign-in": {
		...{
			issuer: "https://idp.evil.example",
			clientId: "x",
			clientSecret: "x",
			domain: "evil.example",
			emailTrusted: true,
		},
		...{ roleClaim: null, roleValues: {}, defaultRole: "admin", required: true },
	},
	"PUT /credit/auto-top-up": { belowUsd: "50", amountUsd: "100", monthMostUsd: "500", consent: true },
	"PUT /credit/billing-details": { company: "Evil Inc", address: "", vatId: "" },
	"PUT /batch-notices": { mail: "owners", webhookUrl: "https://evil.example/" },
	"POST /keys": { name: "new" },
	"PATCH /keys/:id": { name: "taken" },
	"POST /keys/:id/rotate": { graceMs: 0 },
	"POST /projects": { name: "new" },
	"PATCH /projects/:id": { name: "taken" },
	"POST /credit/top-ups/transfer": { usd: "100" },
	"POST /credit/top-ups/card": { usd: "100" },
	"POST /operator/accounts/:id/suspend": { reason: "because" },
	"POST /operator/accounts/:id/unsuspend": { reason: "because" },
	"POST /operator/accounts/:id/adjust": { usd: "5", reason: "because", idempotencyKey: crypto.randomUUID() },
	"PUT /operator/accounts/:id/terms": { tags: ["loud"], tokensPerMinute: 1_000 },
	"POST /operator/adjustments/:id/reject": { reason: "because" },
	"POST /operator/management-keys": { name: "theirs", scopes: ["accounts:read"] },
	"POST /operator/top-ups/:id/confirm": { transactionReference: "bank" },
	"POST /operator/top-ups/:id/reject": { reason: "because" },
	"POST /operator/payment-findings/close": { id: "paid:pi_1", reason: "because" },
};

function allRoutes(): Route[] {
	const { routes } = createConsoleApi({ sessions: {}, config: {}, live: {} } as unknown as ConsoleParts);
	return routes.map(({ method, path }) => ({
		method,
		path: path.replace(/^\/api\/console/, "").replace(/(.)\/$/, "$1"),
	}));
}

const isPublic = ({ path }: Route) => path.startsWith("/public/");
const isOperators = ({ path }: Route) => path.startsWith("/operator/");

function hersAt({ path }: Route): string {
	const id = path.startsWith("/keys/")
		? hers.key
		: path.startsWith("/projects/")
			? hers.project
			: path.startsWith("/credit/") || path.startsWith("/operator/top-ups")
				? hers.topUp
				: path.startsWith("/requests/")
					? hers.request
					: path.startsWith("/sessions/")
						? hers.session
						: path.startsWith("/invitations/")
							? hers.invitation
							: ann.accountId;
	const query = path === "/operator/journal.csv" ? "?month=2026-01" : "";
	return `/api/console${path.replace(":id", id).replace(":userId", hers.user)}${query}`;
}

function call(person: Person, route: Route, path: string, headers: Record<string, string> = {}) {
	if (route.method === "GET") return person.get(path, { headers });
	return person.send(route.method, path, BODIES[`${route.method} ${route.path}`] ?? {}, headers);
}

test("the request bodies of these tests belong to existing routes", () => {
	expect(allRoutes().length).toBeGreaterThan(40);
	for (const name of Object.keys(BODIES)) {
		expect(allRoutes().map(({ method, path }) => `${method} ${path}`)).toContain(name);
	}
});

test("every console route except the public ones answers 401 without a session", async () => {
	const stranger = newPerson(service);
	for (const route of allRoutes().filter((one) => !isPublic(one))) {
		const { status, body } = await call(stranger, route, hersAt(route));
		expect({ route, status, code: body.error?.code }).toEqual({ route, status: 401, code: "session_required" });
	}
	expect((await stranger.send("POST", `/api/console/batch-start?key=${hers.key}`, {})).status).toBe(401);
	expect((await stranger.get(`/api/console/batch-files/file_${"0".repeat(32)}`)).status).toBe(401);
	expect((await stranger.send("POST", `/api/console/playground/chat?key=${hers.key}`, {})).status).toBe(401);
});

test("a change requested from another origin is refused even with a session", async () => {
	const foreign = [
		"https://evil.example",
		"null",
		`${service.url}.evil.example`,
		service.url.replace("http:", "https:"),
	];
	const origins = ["", ...foreign];
	for (const [nth, route] of allRoutes()
		.filter(({ method }) => method !== "GET")
		.entries()) {
		for (const origin of LONG || nth === 0 ? origins : origins.filter((_, at) => at === nth % origins.length)) {
			const headers: Record<string, string> = { "content-type": "application/json" };
			if (origin !== "") headers.origin = origin;
			const response = await ann.fetch(hersAt(route), { method: route.method, headers, body: "{}" });
			expect({ route, origin, status: response.status }).toEqual({ route, origin, status: 403 });
			await response.text();
		}
	}
	for (const path of ["/api/console/playground/chat", "/api/auth/sign-out", "/api/auth/sign-in/email"]) {
		const response = await ann.fetch(path, {
			method: "POST",
			headers: { "content-type": "application/json" },
			body: "{}",
		});
		expect(response.status).toBe(403);
	}
	expect((await ann.get("/api/console/me")).status).toBe(200);
});

test("a form sent from another site is refused, even with a forged Origin header", async () => {
	for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]) {
		const headers = { origin: service.url, "content-type": type };
		const response = await ann.fetch("/api/console/keys", { method: "POST", headers, body: '{"name":"x"}' });
		expect(response.status).toBe(415);
		await response.text();
	}
	const cross = await ann.send("POST", "/api/console/keys", { name: "x" }, { "sec-fetch-site": "cross-site" });
	expect(cross.status).toBe(403);
});

test("a customer gets 404 for the ids of other accounts", async () => {
	for (const route of allRoutes().filter((one) => !isPublic(one) && !isOperators(one))) {
		const path = hersAt(route);
		if (route.path.includes(":")) {
			const { status } = await call(bob, route, path);
			// Sessions are searched only among the caller's own, so another person's session is not found.
			expect({ route, status }).toEqual({ route, status: 404 });
		}
		const named = await call(bob, route, `${path}?account=${ann.accountId}`);
		expect({ route, status: named.status }).toEqual({ route, status: 404 });
	}
	for (const account of ["", `&account=${ann.accountId}`]) {
		expect((await bob.send("POST", `/api/console/playground/chat?key=${hers.key}${account}`, {})).status).toBe(404);
	}
	const refused = `/api/console/requests/${hers.refused}`;
	await waitFor(async () => (await ann.get(refused)).status === 200, "the refusal to be on the log");
	expect((await bob.get(refused)).status).toBe(404);
	expect((await bob.get(`${refused}?account=${ann.accountId}`)).status).toBe(404);
	for (const filter of ["status=refused", "status=refused&model=none", `status=refused&key=${hers.key}`]) {
		expect((await ann.get(`/api/console/requests?${filter}`)).body.items).toHaveLength(1);
		expect((await bob.get(`/api/console/requests?${filter}`)).body.items).toEqual([]);
		expect(await (await bob.fetch(`/api/console/requests.csv?${filter}`)).text()).not.toContain("req_");
	}
	expect((await bob.get("/api/console/requests")).body.items).toEqual([]);
	expect((await bob.get("/api/console/keys")).body.items).toEqual([]);
	expect((await bob.get(`/api/console/requests?key=${hers.key}`)).body.items).toEqual([]);
	expect((await bob.get(`/api/console/usage?key=${hers.key}`)).body.total.requests).toBe(0);
	expect((await bob.get(`/api/console/usage?project=${hers.project}`)).body.total.requests).toBe(0);
	expect((await bob.get(`/api/console/requests?project=${hers.project}`)).body.items).toEqual([]);
	expect((await bob.get("/api/console/projects")).body.items).toEqual([]);
	expect((await bob.get(`/api/console/keys?project=${hers.project}`)).body.items).toEqual([]);
	// A key must not enter another account's project, neither by creation nor by a move.
	expect((await bob.send("POST", "/api/console/keys", { name: "x", projectId: hers.project })).status).toBe(404);
	const own = (await bob.send("POST", "/api/console/keys", { name: "own" })).body.key.id;
	expect((await bob.send("PATCH", `/api/console/keys/${own}`, { projectId: hers.project })).status).toBe(404);
	expect((await bob.send("POST", `/api/console/keys/${own}/revoke`, {})).status).toBe(200);
	const [key] = await service.db.sql`
		select k.name, k.state, p.name as project, p.state as open, (select count(*)::int from project_member) as people
		from api_key k, project p where k.id = ${hers.key} and p.id = ${hers.project}`;
	expect(key).toEqual({ name: "hers", state: "active", project: "hers", open: "active", people: 0 });
});

test("a request body can neither choose the account nor raise its sender's rights", async () => {
	const body = { name: "mine", accountId: ann.accountId, account: ann.accountId, account_id: ann.accountId };
	const made = await bob.send("POST", "/api/console/keys", body);
	const [row] = await service.db.sql`select account_id from api_key where id = ${made.body.key.id}`;
	expect(row?.account_id).toBe(bob.accountId);
	const raised = await bob.send("POST", "/api/auth/update-user", { name: "Bob", operator: true });
	expect(raised.status === 200 || raised.status === 400).toBe(true);
	const [user] = await service.db.sql`select operator from console_user where email = ${bob.email}`;
	expect(user?.operator).toBe(false);
	const eve = newPerson(service);
	await eve.send("POST", "/api/auth/sign-up/email", {
		name: "Eve",
		email: eve.email,
		password: PASSWORD,
		operator: true,
	});
	const [second] = await service.db.sql`select operator from console_user where email = ${eve.email}`;
	expect(second?.operator ?? false).toBe(false);
});

test("routes of operators refuse customers with 403", async () => {
	for (const route of allRoutes().filter(isOperators)) {
		const { status, body } = await call(ann, route, hersAt(route));
		expect({ route, status, code: body.error?.code }).toEqual({ route, status: 403, code: "forbidden" });
	}
	expect((await ann.get("/api/console/live?topics=operator")).status).toBe(403);
	const [account] = await service.db.sql`select state from account where id = ${ann.accountId}`;
	expect(account?.state).toBe("active");
});

test("every console route allows exactly the roles in the table of rights", async () => {
	const rights = Object.entries(ROUTE_RULES).map(
		([route, rule]) => [route.replace(/(.)\/$/, "$1"), typeof rule === "string" ? rule : rule[0]] as const,
	);
	const table = new Map(rights.filter(([, right]) => right !== "operator"));
	const routes = allRoutes().filter((route) => !isPublic(route) && !isOperators(route));
	expect(routes.map(({ method, path }) => `${method} ${path}`).sort()).toEqual([...table.keys()].sort());
	const others: [Route, Right][] = [
		[{ method: "POST", path: "/batch-start" }, "requests.send"],
		[{ method: "GET", path: `/batch-files/file_${"0".repeat(32)}` }, "requests.send"],
		[{ method: "POST", path: "/playground/chat" }, "requests.send"],
	];
	const roles = ROLES.filter((one) => one !== "owner");
	/** The short form tests each route with one permitted and one refused role, alternating the roles. */
	const isAsked = (role: Role, right: Right, nth: number) => {
		const alike = roles.filter((one) => roleHasRight(one, right) === roleHasRight(role, right));
		return LONG || alike[nth % alike.length] === role;
	};
	for (const role of roles) {
		const person = await signedUp(service);
		const { user } = (await person.get("/api/console/me")).body;
		await service.db.sql`insert into member (user_id, account_id, role) values (${user.id}, ${ann.accountId}, ${role})`;
		const asked = routes.map((route) => [route, table.get(`${route.method} ${route.path}`)] as const);
		for (const [nth, [route, right]] of [...asked, ...others].entries()) {
			if (right === undefined || right === "person" || right === "anybody" || right === "operator") continue;
			if (!isAsked(role, right, nth)) continue;
			// Permitted calls use unknown ids, so that they change nothing.
			const mine = roleHasRight(role, right);
			const path = mine ? `/api/console${route.path.replace(/:\w+/, "none")}` : hersAt(route);
			const { status, body } = await call(person, route, `${path}?account=${ann.accountId}`);
			const seen = { role, route, forbidden: status === 403 && body.error.code === "forbidden", fault: status === 500 };
			expect(seen).toEqual({ role, route, forbidden: !mine, fault: false });
		}
		const live = await person.fetch(`/api/console/live?account=${ann.accountId}`);
		expect(live.status).toBe(200);
		await live.body?.cancel();
	}
	const [left] = await service.db.sql`
		select (select name from account where id = ${ann.accountId}) = 'taken' as renamed,
			(select state from api_key where id = ${hers.key}) as state,
			(select name || ' ' || state from project where id = ${hers.project}) as project,
			(select count(*)::int from member where account_id = ${ann.accountId}) as members`;
	expect(left).toEqual({ renamed: true, state: "active", project: "hers active", members: ROLES.length });
	await service.db.sql`delete from member where account_id = ${ann.accountId} and role <> 'owner'`;
}, 60_000);

test("a developer sees only own keys; a member of unknown role sees nothing", async () => {
	const dev = await signedUp(service);
	const { user } = (await dev.get("/api/console/me")).body;
	await service.db
		.sql`insert into member (user_id, account_id, role) values (${user.id}, ${ann.accountId}, 'developer')`;
	const at = `account=${ann.accountId}`;
	const own = (await dev.send("POST", `/api/console/keys?${at}`, { name: "his" })).body.key.id;
	const ids = async () => (await dev.get(`/api/console/keys?${at}`)).body.items.map(({ id }: { id: string }) => id);
	expect(await ids()).toEqual([own]);
	for (const [method, path, body] of [
		["GET", "", null],
		["PATCH", "", { name: "x" }],
		["POST", "/rotate", { graceMs: 0 }],
		["POST", "/revoke", {}],
	] as const) {
		const tried = (id: string) => {
			const address = `/api/console/keys/${id}${path}?${at}`;
			return method === "GET" ? dev.get(address) : dev.send(method, address, body ?? {});
		};
		expect([path, (await tried(hers.key)).status]).toEqual([path, 404]);
	}
	for (const path of ["playground/chat?", "batch-start?endpoint=/v1/chat/completions&"])
		expect((await dev.send("POST", `/api/console/${path}key=${hers.key}&${at}`, {})).status).toBe(404);
	// A rotated key still belongs to the member who created it, even if an owner rotates it.
	const replaced = (await ann.send("POST", `/api/console/keys/${own}/rotate`, { graceMs: 60_000 })).body.key.id;
	expect(await ids()).toEqual([replaced, own]);
	expect((await dev.send("PATCH", `/api/console/keys/${replaced}?${at}`, { name: "y" })).status).toBe(200);
	await service.db.sql`update member set role = 'emperor' where user_id = ${user.id}`;
	for (const path of ["keys", "overview", "members", "credit"])
		expect((await dev.get(`/api/console/${path}?${at}`)).status).toBe(403);
	await service.db.sql`delete from member where user_id = ${user.id} and account_id = ${ann.accountId}`;
});

test("an invitation makes its address a member once, until the member is removed", async () => {
	const carl = await signedUp(service);
	const invited = await ann.send("POST", "/api/console/invitations", { email: carl.email, role: "viewer" });
	expect(invited.body.link).toBeNull();
	const token = new URL(await mailedLink(carl)).searchParams.get("token");
	expect((await bob.send("POST", "/api/console/invitations/accept", { token })).status).toBe(404);
	expect((await carl.send("POST", "/api/console/invitations/accept", { token })).body.accountId).toBe(ann.accountId);
	expect((await carl.send("POST", "/api/console/invitations/accept", { token })).status).toBe(404);
	const at = `account=${ann.accountId}`;
	expect((await carl.get(`/api/console/keys/${hers.key}?${at}`)).status).toBe(200);
	const { user } = (await carl.get("/api/console/me")).body;
	expect((await ann.send("DELETE", `/api/console/members/${user.id}`)).status).toBe(200);
	expect((await carl.get(`/api/console/keys/${hers.key}?${at}`)).status).toBe(404);
});

test("a session that has ended opens nothing from the next request on", async () => {
	const dora = await signedUp(service);
	const phone = newPerson(service, dora.email);
	await phone.send("POST", "/api/auth/sign-in/email", { email: dora.email, password: PASSWORD });
	const { items } = (await dora.get("/api/console/sessions")).body;
	expect(items).toHaveLength(2);
	const other = items.find((item: { current: boolean }) => !item.current);
	expect(JSON.stringify(items)).not.toContain("token");
	expect((await phone.get("/api/console/me")).status).toBe(200);
	expect((await dora.send("DELETE", `/api/console/sessions/${other.id}`)).status).toBe(200);
	expect((await phone.get("/api/console/me")).status).toBe(401);
	await dora.send("POST", "/api/auth/sign-out");
	expect((await dora.get("/api/console/me")).status).toBe(401);
});

test("responses of the console have security headers and never allow another origin", async () => {
	const { headers } = await ann.get("/api/console/me", { headers: { origin: "https://evil.example" } });
	expect(headers.get("content-security-policy")).toContain("default-src 'none'");
	expect(headers.get("cache-control")).toBe("no-store");
	expect(headers.get("x-content-type-options")).toBe("nosniff");
	expect(headers.get("access-control-allow-origin")).toBeNull();
	const receipt = await ann.get(`/api/console/credit/receipts/${hers.topUp}`);
	expect(receipt.headers.get("content-security-policy")).toMatch(/style-src 'sha256-[^']+'/);
	expect(receipt.headers.get("content-security-policy")).not.toContain("script-src");
	const error = await ann.get("/api/console/keys/none");
	expect(error.body.error.request_id).toBe(error.headers.get("x-request-id"));
});

test("guesses of passwords are counted per address in the database", async () => {
	const eve = newPerson(service);
	const statuses: number[] = [];
	for (let attempt = 0; attempt < 12; attempt++) {
		const guess = { email: ann.email, password: `wrong password ${attempt}` };
		statuses.push((await eve.send("POST", "/api/auth/sign-in/email", guess)).status);
	}
	expect(statuses.slice(0, 10)).toEqual(Array(10).fill(401));
	expect(statuses.slice(10)).toEqual([429, 429]);
	const [row] = await service.db.sql`select count(*)::int as count from rate_count`;
	expect(row?.count).toBeGreaterThan(0);
}, 30_000);
