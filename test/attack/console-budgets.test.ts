import { expect, test } from "bun:test";
import { statSync } from "node:fs";
import { join } from "node:path";
import { newPerson, PERSON_ENV, signedUp } from "../console/person.ts";
import { atEnd, temporaryFolder } from "../support/at-end.ts";
import { LONG } from "../support/long-form.ts";
import { childrenWithRole, residentBytes } from "../support/processes.ts";
import { chatModel } from "../support/service.ts";
import { withUpstream } from "../support/upstream-server.ts";
import { CONSOLE_ATTACKERS } from "./console-attackers.ts";
import type { CustomerReport } from "./customer.ts";
import { withProduct } from "./product.ts";
import { ALONE_S, ATTACK_S, ATTACK_TEST_MS, addRow } from "./rows.ts";

/**
 * Each attacker attacks as fast as possible with several accounts or addresses, while a customer in another process
 * loads pages. In each try all pages are answered, and the console's memory and log stay below their limits. In the
 * best of three tries, the 99th percentile of the event loop's CPU time during a request is at most five times the
 * value without an attack.
 */
const TIMES_MAX = 5;
/** Smallest value without an attack that is used for the ratio: below it the ratio would measure noise. */
const ALONE_MS_MIN = 20;
const CALLERS = LONG ? [1, 4, 16] : [4];
/** Only the measurement of time is repeated, because other processes may slow a try down. */
const TRIES_MAX = 3;
/** The attackers' bodies are 112 MB, of which the runtime keeps several copies for a while. */
const MEMORY_MB_MAX = 1_000;
const LOG_BYTES_A_SECOND_MAX = (1024 * 1024) / 60;
const log = join(temporaryFolder(), "log");

const product = await withProduct({
	models: chatModel({ url: withUpstream().url }),
	env: {
		...{ ROLE: "all", ...PERSON_ENV, STRIPE_API_BASE: "http://127.0.0.1:1" },
		...{ STRIPE_SECRET_KEY: "sk_test_local", STRIPE_WEBHOOK_SECRET: "whsec_local" },
	},
	logPath: log,
});
const [consolePid = 0] = childrenWithRole(product.serve.pid, "console");
const customer = await caller();

/** Creates a person with an account, and returns the credentials for the person's requests. */
async function caller(): Promise<string> {
	const person = await signedUp({ url: product.url, db: product.db });
	return `${person.address}=${[...person.cookies].map(([name, value]) => `${name}=${value}`).join("; ")}`;
}

function run(visitS: number, ...args: string[]) {
	const child = Bun.spawn([process.execPath, join(import.meta.dir, "console-attackers.ts"), ...args], {
		stdout: "pipe",
		stderr: "inherit",
		env: {
			...process.env,
			BUN_CONFIG_MAX_HTTP_REQUESTS: "10000",
			CONSOLE_PID: String(consolePid),
			VISIT_S: String(visitS),
		},
	});
	atEnd(() => child.kill("SIGKILL"));
	return child;
}

const seen = async (seconds: number): Promise<CustomerReport> =>
	new Response(run(seconds, "customer", product.url, customer).stdout).json();

for (const [name, { resource, signedIn }] of Object.entries(CONSOLE_ATTACKERS))
	for (const count of CALLERS)
		test(
			`${count} callers that attack with ${name} delay no customer`,
			async () => {
				const callers: string[] = [];
				for (let nth = 0; nth < count; nth += 1)
					callers.push(signedIn ? await caller() : newPerson({ url: product.url, db: product.db }).address);
				const tries: { alone: CustomerReport; beside: CustomerReport; memoryMb: number; logged: number }[] = [];
				const isFast = ({ alone, beside }: (typeof tries)[number]) =>
					beside.p99LoopMs < TIMES_MAX * Math.max(alone.p99LoopMs, ALONE_MS_MIN);
				while (tries.length < TRIES_MAX && !tries.some(isFast)) {
					const alone = await seen(ALONE_S);
					const attacker = run(ATTACK_S, name, product.url, ...callers);
					await attacker.stdout.getReader().read();
					const [beganMs, bytes] = [performance.now(), statSync(log).size];
					const beside = await seen(ATTACK_S);
					const memoryMb = residentBytes(consolePid) / 1024 / 1024;
					const logged = (statSync(log).size - bytes) / ((performance.now() - beganMs) / 1_000);
					expect(attacker.exitCode).toBeNull();
					attacker.kill("SIGKILL");
					await attacker.exited;
					tries.push({ alone, beside, memoryMb, logged });
				}
				const refused = tries.flatMap(({ beside }) => beside.refused);
				const best = tries.find(isFast) ?? tries.at(-1);
				if (best !== undefined) {
					const { alone, beside } = best;
					addRow({
						...{ resource, attack: name, attackers: count, refused: refused.length },
						...{ aloneMs: alone.p99Ms, attackedMs: beside.p99Ms },
						...{ aloneLoopMs: alone.p99LoopMs, attackedLoopMs: beside.p99LoopMs },
						memoryMb: best.memoryMb,
						isFair: isFast(best) && refused.length === 0,
					});
				}
				expect(refused).toEqual([]);
				expect(Math.max(...tries.map(({ memoryMb }) => memoryMb))).toBeLessThan(MEMORY_MB_MAX);
				expect(Math.max(...tries.map(({ logged }) => logged))).toBeLessThan(LOG_BYTES_A_SECOND_MAX);
				expect(tries.filter(isFast), JSON.stringify(tries)).not.toEqual([]);
			},
			ATTACK_TEST_MS,
		);
