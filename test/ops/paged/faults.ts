/** The faults of a run, one for each alert, in real processes and servers with a real database. */
import { createKey } from "../../../src/keys/key-admin.ts";
import { createDigest } from "../../../src/keys/secret.ts";
import { batchesAt, chatLine } from "../../batch/batch-service.ts";
import { newPerson, operator } from "../../console/person.ts";
import { ask, postJson } from "../../support/chat.ts";
import { paidAccount } from "../../support/paid-account.ts";
import { childrenWithRole } from "../../support/processes.ts";
import { reply } from "../../support/upstream-server.ts";
import type { World } from "./world.ts";

export interface PagedFault {
	readonly what: string;
	readonly alerts: readonly string[];
	/** Causes the fault; resolves when the fault is active. The world repairs anything that remains. */
	run(world: World): Promise<void>;
	/** Repairs the fault before the next one starts. */
	mend?(world: World): Promise<void> | void;
}

export async function newCustomer({ database, pepper }: World): Promise<{ accountId: string; secret: string }> {
	const { statements } = database;
	const accountId = await paidAccount(statements);
	const maker = { statements, digest: createDigest(pepper), serviceName: "service" };
	return { accountId, secret: (await createKey(maker, accountId, { name: "k" })).secret };
}

export function chat(world: World, model: string, secret = world.secret, more: object = {}): Promise<number> {
	return postJson(`${world.url}/v1/chat/completions`, secret, ask("one two three", { model, ...more }))
		.then(async (answer) => {
			await answer.text();
			return answer.status;
		})
		.catch(() => 0);
}

async function sendBatch({ url }: World, secret: string): Promise<void> {
	const batches = batchesAt(url);
	await batches.create(secret, await batches.upload(secret, [chatLine("1", "one two", { model: "steady" })]));
}

const USAGE = { prompt_tokens: 3, completion_tokens: 2 };

const times = (count: number, run: () => Promise<unknown>) => Promise.all(Array.from({ length: count }, run));

export const FAULTS: readonly PagedFault[] = [
	{
		what: "no fault: a model without a server, and limits so low that every run reaches them",
		alerts: [
			"TollgateReplicaDown",
			"TollgateModelWithoutServers",
			"TollgateMemory",
			"TollgateBooksOld",
			"TollgateDiskFills",
		],
		run: async () => {},
	},
	{
		what: "a model server that passes health checks and fails each request",
		alerts: ["TollgateBreakerOpen", "TollgateUpstreamFailures"],
		async run(world) {
			world.shaky.next(...Array.from({ length: 400 }, () => reply().errorStatus(500)));
			// Three customers, because the failures of a single one do not open the circuit breaker for others.
			const keys = await Promise.all([newCustomer(world), newCustomer(world), newCustomer(world)]);
			for (let round = 0; round < 40; round++) {
				for (const { secret } of keys) await chat(world, "shaky", secret);
				await Bun.sleep(300);
			}
		},
	},
	{
		what: "a model server that refuses our key, and a server with contradicting token counts",
		alerts: ["TollgateUpstreamRefuses", "TollgateUsageContradicts"],
		async run(world) {
			world.steady.next(reply().errorStatus(401), reply().lie({ top: { usage: { ...USAGE, total_tokens: 99 } } }));
			for (const _ of [1, 2]) await chat(world, "steady");
		},
	},
	{
		what: "a payment at Stripe that the books lack, a journal that came back too late, a lost act",
		alerts: ["TollgatePaymentsOpen", "TollgateSettlementsRefused", "TollgateActsLost"],
		async run({ database }) {
			await database.sql`insert into refused_settlement (instance_id, epoch, requests, charged_nano_usd) values ('gone', 1, 3, 1)`;
			await database.sql`insert into lost_act (seq, at, kind, subject, outcome) values (1, now(), 'key', 'key_1', 'lost')`;
			await database.sql`insert into stripe_finding (id, kind, reason) values ('paid:pi_1', 'uncredited', 'refused')`;
		},
	},
	{
		what: "a model server that does not answer, and more requests than may run or wait",
		alerts: ["TollgateRequestsWaiting", "TollgateOverloaded"],
		async run(world) {
			const end = Promise.withResolvers<void>();
			world.later.push(end.resolve);
			world.narrow.next(...Array.from({ length: 400 }, () => reply().text("a").behind(end.promise)));
			for (let nth = 0; nth < 400; nth++) void chat(world, "narrow");
		},
		mend: (world) => {
			for (const end of world.later.splice(0)) end();
		},
	},
	{
		what: "first tokens that take 11 s",
		alerts: ["TollgateFirstTokenSlow"],
		async run(world) {
			world.steady.next(...Array.from({ length: 400 }, () => reply().text("a b").delay(11_000)));
			void times(200, () => chat(world, "steady", world.secret, { stream: true }));
		},
	},
	{
		what: "one request with a key whose state was changed by hand to an unknown one",
		alerts: ["TollgateInternalErrors"],
		async run(world) {
			const { accountId, secret } = await newCustomer(world);
			const { sql } = world.database;
			await sql`update api_key set state = 'unknown' where account_id = ${accountId}`;
			try {
				const answer = await fetch(`${world.url}/v1/models`, { headers: { authorization: `Bearer ${secret}` } });
				if (answer.status !== 500) throw new Error(`it was answered with ${answer.status}: ${await answer.text()}`);
			} finally {
				await sql`update api_key set state = 'active' where account_id = ${accountId}`;
			}
		},
	},
	{
		what: "an unavailable mail server",
		alerts: ["TollgateMailsFail"],
		async run(world) {
			const person = newPerson({ url: world.url, db: world.database });
			const mail = { name: "Test Person", email: person.email, password: "correct horse battery staple", next: "/" };
			await person.send("POST", "/api/auth/sign-up/email", mail);
		},
	},
	{
		what: "a webhook that answers 410",
		alerts: ["TollgateNoticesFail"],
		async run(world) {
			const { accountId, secret } = await newCustomer(world);
			await world.database
				.sql`insert into batch_notice_setting (account_id, webhook_url, webhook_salt) values (${accountId}, ${world.gone.url}, 'salt')`;
			await sendBatch(world, secret);
		},
	},
	{
		what: "a table that refuses the outcomes of a batch",
		alerts: ["TollgateBatchesRefused"],
		async run(world) {
			await world.database
				.sql`alter table batch_line add constraint refuses check (state in ('claimed', 'free')) not valid`;
			await sendBatch(world, (await newCustomer(world)).secret);
		},
		mend: ({ database }) => database.sql`alter table batch_line drop constraint refuses`.then(() => {}),
	},
	{
		what: "books changed by hand, and a hanging console whose successor checks the books",
		alerts: ["TollgateWorkerDown", "TollgateBooksBroken"],
		async run(world) {
			await world.database.sql`update budget set limit_nano_usd = limit_nano_usd + 1 where id = ${world.accountId}`;
			const [pid] = childrenWithRole(world.first.pid, "console");
			process.kill(pid as number, "SIGSTOP");
		},
	},
	{
		what: "an instance paused by SIGSTOP while an account is suspended",
		alerts: ["TollgateDown", "TollgateRevocationsLate"],
		async run(world) {
			const { accountId } = await newCustomer(world);
			const person = await operator({ url: world.url, db: world.database });
			world.second.kill("SIGSTOP");
			void person.send("POST", `/api/console/operator/accounts/${accountId}/suspend`, { reason: "a run" });
		},
		mend: ({ second }) => second.kill("SIGCONT"),
	},
	{
		what: "an outage of Postgres longer than a lease, with refused requests of 400 keys",
		alerts: ["TollgateNotAdmitting", "TollgateSettlementsLate", "TollgateRefusalsDropped"],
		async run(world) {
			const keys: Awaited<ReturnType<typeof newCustomer>>[] = [];
			// At most forty at a time, because few statements may wait for a connection.
			for (let tens = 0; tens < 10; tens++)
				keys.push(...(await Promise.all(Array.from({ length: 40 }, () => newCustomer(world)))));
			// Repeated until both workers have nearly all keys in memory.
			for (let round = 0; round < 6; round++)
				await Promise.all(keys.map(({ secret }) => chat(world, "nobody", secret)));
			world.postgres.pause();
			for (let nth = 0; nth < 5; nth++) await chat(world, "steady");
			for (let round = 0; round < 12; round++)
				await Promise.all(
					keys.flatMap(({ secret }) => [
						chat(world, "nobody", secret),
						chat(world, "steady", secret, { messages: [] }),
					]),
				);
		},
		mend: ({ postgres }) => postgres.resume(),
	},
];
