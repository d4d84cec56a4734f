import { expect, test } from "bun:test";
import { ADDRESS_HEADER, readMailCaller } from "../../src/console/sign-in/auth-request.ts";
import { mailsTo } from "../console/mailbox.ts";
import { newPerson, operator, PASSWORD, PERSON_ENV, signedUp } from "../console/person.ts";
import { withChat } from "../support/service.ts";
import { waitFor } from "../support/wait.ts";

/** A stranger can neither flood a mailbox nor put text into a mail. */

const { service } = await withChat({ env: PERSON_ENV, jobs: { pace: 10 } });
const dropped = () =>
	service.logged.filter(({ message }) => String(message).startsWith("a mail was dropped: its recipient reached"))
		.length;
const signUp = (email: string, name = "Ann") =>
	newPerson(service).send("POST", "/api/auth/sign-up/email", { name, email, password: PASSWORD });

test("a mailbox gets at most five mails of one kind per hour", async () => {
	const name = crypto.randomUUID();
	const spellings = [
		`${name}@example.com`,
		`${name}+a@example.com`,
		`${name.toUpperCase()}@EXAMPLE.com`,
		`${name}+b+c@example.com`,
	];
	const all = () => spellings.flatMap((one) => mailsTo(one)).filter((mail, at, list) => list.indexOf(mail) === at);
	const before = dropped();
	const answers = await Promise.all(Array.from({ length: 16 }, (_, nth) => signUp(spellings[nth % 4] as string)));
	// The answer is the same with and without the limit, so it reveals nothing.
	expect(answers.map(({ status }) => status)).toEqual(Array(16).fill(200));
	await waitFor(() => dropped() === before + 11, "eleven mails to be dropped");
	await waitFor(() => all().length === 5, "five mails to arrive");
	expect(new Set(all().map(({ subject }) => subject)).size).toBe(1);
	// After an hour more mails may be sent, until the limit per day is reached.
	for (const expected of [10, 15, 15]) {
		await service.db
			.sql`update rate_count set started_at = started_at - interval '61 minutes' where key like 'mails an hour:%'`;
		const already = dropped() + all().length;
		await Promise.all(Array.from({ length: 8 }, (_, nth) => signUp(spellings[nth % 4] as string)));
		await waitFor(() => dropped() + all().length === already + 8, "all to be sent or dropped");
		expect(all().length).toBe(expected);
	}
});

test("a flood of one kind of mail does not stop the other kinds to that mailbox", async () => {
	const victim = await signedUp(service);
	const before = mailsTo(victim.email).length;
	await Promise.all(Array.from({ length: 10 }, () => signUp(victim.email)));
	await waitFor(() => mailsTo(victim.email).length === before + 5, "five mails");
	await victim.send("POST", "/api/auth/request-password-reset", { email: victim.email });
	await waitFor(() => mailsTo(victim.email).some(({ text }) => text.includes("/reset?token=")), "the link");
});

test("an owner gets reset links again an hour after strangers requested five of them", async () => {
	const victim = await signedUp(service);
	const links = () => mailsTo(victim.email).filter(({ text }) => text.includes("/reset?token=")).length;
	for (const expected of [5, 10, 15, 20]) {
		const already = dropped() + links();
		await service.db.sql`update rate_count set started_at = started_at - interval '61 minutes'`;
		for (let nth = 0; nth < 6; nth += 1)
			await newPerson(service).send("POST", "/api/auth/request-password-reset", { email: victim.email });
		await waitFor(() => dropped() + links() === already + 6, "all to be sent or dropped");
		expect(links()).toBe(expected);
	}
});

test("mails of callers without a session belong to their /24 or /48 network", () => {
	const networkOf = (address: string) =>
		readMailCaller({ headers: new Headers({ [ADDRESS_HEADER]: address }) }).network;
	const addresses = [
		"203.0.113.9",
		"203.0.113.200",
		"203.0.114.9",
		"2001:db8:1:2::1",
		"2001:db8:1:3::1",
		"2001:db8:2::1",
	];
	expect(new Set(addresses.map(networkOf)).size).toBe(4);
	expect([networkOf("203.0.113.9"), networkOf("2001:db8:1:2::1")]).toEqual([
		networkOf("203.0.113.200"),
		networkOf("2001:db8:1:3::1"),
	]);
});

/** Messages and links, entered in fields for names. */
const NAMES = [
	"Win at https://evil.example/now",
	"visit www.evil.example",
	"evil.example",
	"EVIL.EXAMPLE is free",
	"evil．example",
	"evil。example",
	"ｅｖｉｌ.ｅｘａｍｐｌｅ",
	"ev\u200cil.exa\u200dmple",
	"Ann\r\nBcc: victim@example.com",
	"Ann\u0000",
	"Ann\u202egnirts",
	"Ann\u200b",
	"A".repeat(101),
	"A".repeat(60_000),
	"mail me at a@b.example",
	" ",
	"",
];
const USUAL = [
	"Ann",
	"José María O'Neil-Smith",
	"J. R. Example",
	"李小龍",
	"Dr. Zoë",
	"علی‌رضا",
	"Example Works Ltd.",
	"👩‍🚀 Ada",
];

test("the console refuses names with links or markup, and accepts real names", async () => {
	const person = await signedUp(service);
	for (const name of NAMES) {
		const shown = name.slice(0, 40);
		expect([shown, (await signUp(`${crypto.randomUUID()}@example.com`, name)).status]).toEqual([shown, 400]);
		expect([shown, (await person.send("POST", "/api/auth/update-user", { name })).status]).toEqual([shown, 400]);
		expect([shown, (await person.send("PATCH", "/api/console/account", { name })).status]).toEqual([shown, 400]);
	}
	const { body } = await person.get("/api/console/me");
	expect([body.user.name, body.account.name]).toEqual(["Test Person", "Test Person"]);
	for (const name of USUAL) {
		expect([name, (await person.send("POST", "/api/auth/update-user", { name })).status]).toEqual([name, 200]);
		expect([name, (await person.send("PATCH", "/api/console/account", { name })).status]).toEqual([name, 200]);
	}
});

test("an invalid name gets the same error for known and unknown addresses", async () => {
	const known = await signedUp(service);
	const [a, b] = [await signUp(known.email, "evil.example"), await signUp("nobody@example.com", "evil.example")];
	expect([a.status, a.body]).toEqual([b.status, b.body]);
});

test("a text that is not exactly one mail address is refused", async () => {
	const owner = await signedUp(service);
	const victim = `${crypto.randomUUID()}@example.com`;
	for (const email of [
		`${victim},other@example.com`,
		`${victim};other@example.com`,
		`x<${victim}>`,
		`"x"<${victim}>`,
		`${victim}\r\nBcc: other@example.com`,
		`group:${victim};`,
		`a b@example.com`,
		`a@b@example.com`,
		`@example.com`,
		`(${victim})x@example.com`,
		// Some mail programs deliver these addresses to the same mailbox, also with several dots.
		`${victim}.`,
		`${victim}..`,
		`a@.example.com`,
		`a@example..com`,
	]) {
		const invited = await owner.send("POST", "/api/console/invitations", { email, role: "developer" });
		expect([email, invited.status]).toEqual([email, 400]);
		expect([email, (await signUp(email)).status]).toEqual([email, 400]);
	}
	expect(mailsTo(victim)).toEqual([]);
});

test("subjects of mails contain no text that customers wrote", async () => {
	const owner = await signedUp(service);
	await owner.send("POST", "/api/auth/update-user", { name: "Buy Now" });
	await owner.send("PATCH", "/api/console/account", { name: "Cheap Pills" });
	const guest = `${crypto.randomUUID()}@example.com`;
	await owner.send("POST", "/api/console/invitations", { email: guest, role: "developer" });
	await waitFor(() => mailsTo(guest).length === 1, "the invitation");
	expect(mailsTo(guest)[0]?.subject).toBe("An invitation to service");
	const boss = await operator(service);
	expect(boss.email).toContain("@");
	await owner.send("PUT", "/api/console/alert", { usd: "50" });
	const alerts = () => mailsTo(owner.email).filter(({ subject }) => subject.startsWith("Low credit"));
	// One job finds alerts and another delivers the mails, each every five seconds.
	await waitFor(() => alerts().length === 1, "the alert", 45_000);
	expect(alerts()[0]?.subject).toBe("Low credit (service)");
	expect(alerts()[0]?.text).not.toContain("Cheap");
}, 60_000);
