import { expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { newPerson, PERSON_ENV, signedUp } from "../console/person.ts";
import { atEnd, temporaryFolder } from "../support/at-end.ts";
import { LONG } from "../support/long-form.ts";
import { chatModel } from "../support/service.ts";
import { withUpstream } from "../support/upstream-server.ts";
import { CONSOLE_ATTACKERS, type ConsoleSeen } from "./console-attackers.ts";
import { withProduct } from "./product.ts";
import { ATTACK_S, ATTACK_TEST_MS, addRow } from "./rows.ts";

/**
 * Each attacker at full effort, with several accounts or addresses, and a customer beside it in a process of its own:
 * all its pages are answered, the 99th percentile stays within five times of that alone, the console's memory and log
 * stay below their bounds.
 */
const TIMES_MAX = 5;
/** Lower bound for the time alone: below it the ratio would measure noise. */
const ALONE_MS_MIN = 20;
const CALLERS = LONG ? [1, 4, 16] : [4];
const TRIES_MAX = 3;
/** The bodies are 112 MB, in several copies, with what the runtime keeps of them. */
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
const consolePid = pidOf("console", product.serve.pid);
const customer = await caller();

/** Id of the child of `serve` that runs this role. */
function pidOf(role: string, parent: number): number {
	for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
		try {
			if (Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1]) !== parent) continue;
			if (readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(`ROLE=${role}`)) return Number(pid);
		} catch {}
	}
	throw new Error(`no ${role} runs`);
}

const memoryMb = () => Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${consolePid}/status`, "utf8"))?.[1]) / 1024;

/** Creates a person with an account, and returns what the person's requests need. */
async function caller(): Promise<string> {
	const person = await signedUp({ url: product.url, db: product.db });
	return `${person.address}=${[...person.cookies].map(([name, value]) => `${name}=${value}`).join("; ")}`;
}

function run(...args: string[]) {
	const child = Bun.spawn([process.execPath, join(import.meta.dir, "console-attackers.ts"), ...args], {
		stdout: "pipe",
		stderr: "inherit",
		env: {
			...process.env,
			BUN_CONFIG_MAX_HTTP_REQUESTS: "10000",
			CONSOLE_PID: String(consolePid),
			VISIT_S: String(ATTACK_S ?? 2),
		},
	});
	atEnd(() => child.kill("SIGKILL"));
	return child;
}

const seen = async (): Promise<ConsoleSeen> => new Response(run("customer", product.url, customer).stdout).json();

for (const [name, { resource, signedIn }] of Object.entries(CONSOLE_ATTACKERS))
	for (const count of CALLERS)
		test(
			`${count} callers with ${name} delay no customer`,
			async () => {
				const callers: string[] = [];
				for (let nth = 0; nth < count; nth += 1)
					callers.push(signedIn ? await caller() : newPerson({ url: product.url, db: product.db }).address);
				const tries: { alone: ConsoleSeen; beside: ConsoleSeen; memory: number; logged: number }[] = [];
				const isFair = ({ alone, beside, memory, logged }: (typeof tries)[number]) =>
					beside.refused.length === 0 &&
					beside.p99LoopMs < TIMES_MAX * Math.max(alone.p99LoopMs, ALONE_MS_MIN) &&
					memory < MEMORY_MB_MAX &&
					logged < LOG_BYTES_A_SECOND_MAX;
				while (tries.length < TRIES_MAX && !tries.some(isFair)) {
					const alone = await seen();
					const attacker = run(name, product.url, ...callers);
					await attacker.stdout.getReader().read();
					const [beganMs, bytes] = [performance.now(), statSync(log).size];
					const beside = await seen();
					const memory = memoryMb();
					const logged = (statSync(log).size - bytes) / ((performance.now() - beganMs) / 1_000);
					attacker.kill("SIGKILL");
					await attacker.exited;
					tries.push({ alone, beside, memory, logged });
				}
				if (process.env.SHOWN) console.log(name, count, JSON.stringify(tries));
				const last = tries.find(isFair) ?? tries[tries.length - 1];
				if (last !== undefined) {
					const { alone, beside } = last;
					addRow({
						...{ resource, attack: name, attackers: count, refused: beside.refused.length, isFair: isFair(last) },
						...{ aloneMs: alone.p99Ms, attackedMs: beside.p99Ms },
						...{ aloneLoopMs: alone.p99LoopMs, attackedLoopMs: beside.p99LoopMs },
					});
				}
				expect(tries.find(isFair) ?? tries).toMatchObject({ beside: { refused: [] } });
			},
			ATTACK_TEST_MS,
		);
