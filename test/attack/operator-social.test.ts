import { expect, test } from "bun:test";
import { createOperator } from "../../src/console/operator/operator-admin.ts";
import { newPerson, operator, PERSON_ENV, signedUp } from "../console/person.ts";
import { atEnd } from "../support/at-end.ts";
import { withChat } from "../support/service.ts";

/** Operators cannot sign in through a social provider, because it does not check this service's second factor. */

const { service } = await withChat({
	env: {
		...PERSON_ENV,
		NODE_ENV: "production",
		KEY_PEPPER: "p".repeat(64),
		CONSOLE_SECRET: "s".repeat(64),
		GITHUB_CLIENT_ID: "client",
		GITHUB_CLIENT_SECRET: "secret",
	},
});

let present = { id: 1, email: "" };
const real = globalThis.fetch;
globalThis.fetch = Object.assign(
	async (input: string | URL | Request, init?: RequestInit) => {
		const { hostname, pathname } = new URL(input instanceof Request ? input.url : input);
		if (hostname === "github.com")
			return Response.json({ access_token: "x", token_type: "bearer", scope: "user:email" });
		if (hostname !== "api.github.com") return real(input, init);
		if (pathname === "/user/emails") return Response.json([{ email: present.email, primary: true, verified: true }]);
		return Response.json({ id: present.id, login: "somebody", name: "Some Body", email: present.email });
	},
	{ preconnect: real.preconnect },
);
atEnd(() => {
	globalThis.fetch = real;
});

async function comeIn(email: string, id: number) {
	present = { id, email };
	const person = newPerson(service, email);
	const begun = await person.send("POST", "/api/auth/sign-in/social", { provider: "github", callbackURL: "/overview" });
	const state = new URL(begun.body.url).searchParams.get("state");
	const answer = await person.get(`/api/auth/callback/github?code=x&state=${state}`);
	return { person, location: answer.headers.get("location") ?? "", me: await person.get("/api/console/me") };
}

test("social sign-in works for customers, not for operators", async () => {
	const customer = await signedUp(service);
	const known = await comeIn(customer.email, 1);
	expect([known.location, known.me.status]).toEqual(["/overview", 200]);
	const fresh = `${crypto.randomUUID()}@example.com`;
	const early = await comeIn(fresh, 2);
	expect(early.me.status).toBe(200);

	const boss = await operator(service);
	const refused = await comeIn(boss.email, 3);
	expect([refused.me.status, refused.person.cookies.has("tollgate.session_token")]).toEqual([401, false]);
	expect(refused.location).toContain("error");
	expect((await createOperator(service.db.statements, fresh)).token).not.toBeNull();
	expect((await early.person.get("/api/console/me")).status).toBe(401);
	expect((await comeIn(fresh, 2)).me.status).toBe(401);
});
