import { expect, test } from "bun:test";
import { startStripe } from "../billing/stripe-server.ts";
import { atEnd } from "../support/at-end.ts";
import { chatModel, withService } from "../support/service.ts";
import { type Answer, operator, PERSON_ENV, signedUp } from "./person.ts";

/** Submitting a form again after a lost response must not create a second object. */

const stripe = startStripe();
atEnd(() => stripe.stop());
const service = await withService({
	models: chatModel({ url: "http://127.0.0.1:9", dialect: "vllm" }),
	env: {
		...PERSON_ENV,
		STRIPE_SECRET_KEY: "sk_test_local",
		STRIPE_WEBHOOK_SECRET: "whsec_repeated",
		STRIPE_API_BASE: stripe.url,
	},
});
const { sql } = service.db;
const owner = await signedUp(service);
const boss = await operator(service);

interface Form {
	readonly path: string;
	readonly input: Record<string, unknown>;
	readonly other: Record<string, unknown>;
	readonly action: string;
	readonly by?: typeof boss;
	/** Selects the part of the response that a repetition must return unchanged. */
	readonly told: (answer: Answer) => unknown;
}

const topUpOf = ({ body }: Answer) => [body.topUp?.id, body.topUp?.reference, body.url];
const madeOf = ({ body }: Answer) => [body.key?.id ?? body.id, body.secret ?? body.link];
const name = { input: { name: "one" }, other: { name: "another" } };
const usd = { input: { usd: "100" }, other: { usd: "200" } };
const [scopes, role] = [["keys:read"], "viewer"];

/** Every form of the console that creates an object. */
const FORMS: readonly Form[] = [
	{ path: "/credit/top-ups/transfer", ...usd, action: "topup.create", told: topUpOf },
	{ path: "/credit/top-ups/card", ...usd, action: "topup.create", told: topUpOf },
	{ path: "/projects", ...name, action: "project.create", told: ({ body }) => body.id },
	{ path: "/keys", ...name, action: "key.create", told: madeOf },
	{
		path: "/invitations",
		input: { email: "one@example.com", role },
		other: { email: "another@example.com", role },
		action: "member.invite",
		told: madeOf,
	},
	{
		path: "/operator/management-keys",
		input: { name: "one", scopes },
		other: { name: "another", scopes },
		action: "management_key.create",
		by: boss,
		told: madeOf,
	},
];

const done = async (action: string) => {
	const [row] = await sql`select count(*) as n from audit_event where action = ${action}`;
	return Number(row?.n);
};

for (const { path, input, other, action, by = owner, told } of FORMS)
	test(`POST ${path} acts once per token, however often it is sent`, async () => {
		const before = await done(action);
		const send = (body: object, token: string) => by.send("POST", `/api/console${path}`, { ...body, token });
		const one = crypto.randomUUID();
		const first = await Promise.all(Array.from({ length: 4 }, () => send(input, one)));
		const answers = [...first, await send(input, one)];
		expect(answers.map(({ status }) => status)).toEqual(Array(5).fill(200));
		expect(new Set(answers.map((answer) => JSON.stringify(told(answer)))).size).toBe(1);
		expect((await done(action)) - before).toBe(1);
		const second = await send(other, crypto.randomUUID());
		expect(second.status).toBe(200);
		expect(told(second)).not.toEqual(told(answers[0] as Answer));
		expect((await done(action)) - before).toBe(2);
	});

test("a token of a repeated request is valid for its sender only, not for a colleague", async () => {
	const colleague = await signedUp(service);
	await sql`
		insert into member (user_id, account_id, role)
		select id, ${owner.accountId}, 'admin' from console_user where email = ${colleague.email}`;
	const secondBoss = await operator(service);
	const visited = `?account=${owner.accountId}`;
	const both = [
		...FORMS.map(({ path, other: asked, by, told }) => ({ path, asked, isBoss: by === boss, told })),
		{ path: "/batch-notices/secret", asked: {}, isBoss: false, told: madeOf },
	];
	const set = await owner.send("PUT", `/api/console/batch-notices${visited}`, {
		webhookUrl: "https://hooks.example/1",
	});
	expect(set.status).toBe(200);
	for (const { path, asked, isBoss, told } of both) {
		const [one, another] = isBoss ? [boss, secondBoss] : [owner, colleague];
		const token = crypto.randomUUID();
		const send = (by: typeof boss) =>
			by.send("POST", `/api/console${path}${isBoss ? "" : visited}`, { ...asked, token });
		const [first, second] = [await send(one), await send(another)];
		expect([path, first.status, second.status]).toEqual([path, 200, 200]);
		for (const [nth, word] of [told(first)].flat().entries())
			if (typeof word === "string") expect([path, word]).not.toEqual([path, [told(second)].flat()[nth]]);
	}
});
