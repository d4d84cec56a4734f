import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../../support/at-end.ts";
import { chatModel, withService } from "../../support/service.ts";
import { withUpstream } from "../../support/upstream-server.ts";
import { newMail } from "../mailbox.ts";
import { confirmAddress, mailedLink, newPerson, PASSWORD, PERSON_ENV } from "../person.ts";

const logo = join(temporaryFolder(), "acme.svg");
const PICTURE = '<svg xmlns="http://www.w3.org/2000/svg"><circle r="3"/></svg>';
writeFileSync(logo, PICTURE);
const upstream = withUpstream("vllm");
const service = await withService({
	models: chatModel({ url: upstream.url, dialect: "vllm" }),
	brand: `  name: Acme & Co $&
  logo: ${logo}
  accent: "#ffcc00"
  headline: Models from the Alps
  terms: { url: "https://acme.example/terms", version: v2 }`,
	env: PERSON_ENV,
});
const signUp = (email: string, more: Record<string, unknown> = {}) => {
	return { person: newPerson(service, email), body: { name: "Ada", email, password: PASSWORD, ...more } };
};
async function accepted(email: string): Promise<unknown[]> {
	const rows = await service.db
		.sql`select version from terms_acceptance t join console_user u on u.id = t.user_id where u.email = ${email}`;
	return rows.map(({ version }) => version);
}
const address = () => `${crypto.randomUUID()}@example.com`;

test("a page shows the operator's name and logo instead of Tollgate's", async () => {
	const html = await (await fetch(`${service.url}/sign-in`)).text();
	expect(html).toContain("<title>Acme &amp; Co $&amp;</title>");
	expect(html).not.toContain("Tollgate");
	const url = /rel="icon" href="([^"]+)"/.exec(html)?.[1] ?? "";
	const picture = await fetch(service.url + url);
	expect(await picture.text()).toBe(PICTURE);
	expect(picture.headers.get("content-type")).toBe("image/svg+xml");
	expect(picture.headers.get("content-security-policy")).toStartWith("default-src 'none'");
});

test("sign-up requires the terms and records their version with the verified address", async () => {
	const email = address();
	const { person, body } = signUp(email);
	for (const acceptedTerms of [undefined, null, "v1", true]) {
		const refused = await person.send("POST", "/api/auth/sign-up/email", { ...body, acceptedTerms });
		expect([refused.status, refused.body.code]).toEqual([400, "TERMS_NOT_ACCEPTED"]);
	}
	expect((await person.send("POST", "/api/auth/sign-up/email", { ...body, acceptedTerms: "v2" })).status).toBe(200);
	expect(await accepted(email)).toEqual([]);
	await confirmAddress(person);
	expect(await accepted(email)).toEqual(["v2"]);
	expect((await person.get("/api/console/me")).body.termsDue).toBeNull();
});

test("mails carry the operator's name instead of Tollgate's", async () => {
	const email = address();
	const { person, body } = signUp(email, { acceptedTerms: "v2" });
	await person.send("POST", "/api/auth/sign-up/email", body);
	expect((await newMail(email)).subject).toBe("Confirm your address for Acme & Co $&");
});

test("the owner of an address must accept the terms although a stranger has done so", async () => {
	const email = address();
	const stranger = signUp(email, { acceptedTerms: "v2" });
	await stranger.person.send("POST", "/api/auth/sign-up/email", stranger.body);
	const owner = newPerson(service, email);
	const token = new URL(await mailedLink(owner)).searchParams.get("token");
	const newPassword = "another long password";
	expect((await owner.send("POST", "/api/auth/verify-email", { token, newPassword, name: "Owner" })).status).toBe(200);
	expect(await accepted(email)).toEqual([]);
	await owner.send("POST", "/api/auth/sign-in/email", { email, password: newPassword });
	expect((await owner.get("/api/console/me")).body.termsDue).toEqual({
		url: "https://acme.example/terms",
		version: "v2",
	});
	const stale = await owner.send("POST", "/api/console/terms", { version: "v1" });
	expect([stale.status, stale.body.error.code]).toEqual([409, "conflict"]);
	for (const _ of [1, 2]) expect((await owner.send("POST", "/api/console/terms", { version: "v2" })).status).toBe(200);
	expect((await owner.get("/api/console/me")).body.termsDue).toBeNull();
});
