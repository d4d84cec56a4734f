import { addUsd, formatUsd, type NanoUsd, nanoUsd, parseUsd, ZERO_USD } from "../money/nano-usd.ts";
import { type BenchStep, type BenchTarget, checkTarget, runStep } from "./bench-load.ts";
import { type Command, type CommandContext, type CommandInput, UsageError } from "./command.ts";
import { SERVICE_KEY_VARIABLE, serviceTarget, serviceUrlOption } from "./service-target.ts";
import { formatTable } from "./table.ts";

/** What the runtime has under way at once, unless it is told otherwise before it starts. */
const CLIENTS_MAX = 256;
const SECONDS_MAX = 600;
const MAX_USD_DEFAULT = nanoUsd(1_000_000_000);
/** Of one core: a process that is busier answers no more requests, only later. */
const BUSY_CORES = 0.85;
/** More clients that get less than this much more have met a wall. */
const GROWTH_MIN = 1.1;

/** A step, with what the gateway's process did meanwhile; null where its metrics are not to be had. */
interface Measured extends BenchStep {
	readonly gatewayCores: number | null;
}

export const benchCommand: Command = {
	name: "bench",
	summary: "ask a running service for as much as it gives, and say what it carries and where the wall is",
	arguments: ["MODEL"],
	options: {
		clients: { type: "string", value: "N,N,…", help: "clients at once, one step each [1,4,16,64]" },
		seconds: { type: "string", value: "S", help: "for each step [5]" },
		stream: { type: "boolean", help: "streamed answers" },
		"max-tokens": { type: "string", value: "N", help: "of an answer [16]" },
		words: { type: "string", value: "N", help: "of a prompt [100]" },
		"max-usd": { type: "string", value: "USD", help: "ends when it has cost so much [1]" },
		url: serviceUrlOption,
	},
	details: `Chats of MODEL, charged to the key in ${SERVICE_KEY_VARIABLE}: give that key a cap and an account of its own. The model's
servers are really asked. METRICS_TOKEN, or a service on this machine, lets it see how busy the gateway is.`,
	async run(context, input) {
		const target = targetOf(context, input);
		const steps = clientsOf(input.option("clients") ?? "1,4,16,64");
		const seconds = wholeOf(input, "seconds", 5, SECONDS_MAX);
		const most = input.option("max-usd") === undefined ? MAX_USD_DEFAULT : parseUsd(input.option("max-usd") ?? "");
		if (most === undefined) throw new UsageError("--max-usd is an amount in dollars, as 0.50");
		await checkTarget(target);
		const measured: Measured[] = [];
		let spent: NanoUsd = ZERO_USD;
		for (const clients of steps) {
			// Nothing is answered to more clients either.
			if (spent >= most || measured.at(-1)?.answered === 0) break;
			context.progress(`${clients} clients for ${seconds} s`);
			const before = await cpuSeconds(context, target.url);
			const spentBefore = spent;
			const step = await runStep(target, { clients, seconds, isOver: (cost) => addUsd(spentBefore, cost) >= most });
			const after = await cpuSeconds(context, target.url);
			spent = addUsd(spent, step.cost);
			measured.push({
				...step,
				gatewayCores: before === null || after === null ? null : (after - before) / step.seconds,
			});
		}
		context.progress("");
		const verdict = verdictOf(measured);
		const answered = measured.some((step) => step.answered > 0);
		return {
			json: { model: target.model, steps: measured.map(jsonOf), costUsd: formatUsd(spent), verdict },
			text: `${tableOf(measured, target.stream)}\n\n${verdict}\nIt cost USD ${formatUsd(spent)}.`,
			...(answered ? {} : { exitCode: 1 }),
		};
	},
};

function targetOf(context: CommandContext, input: CommandInput): BenchTarget {
	return {
		...serviceTarget(context, input),
		model: input.argument(0),
		stream: input.flag("stream"),
		maxTokens: wholeOf(input, "max-tokens", 16, 1_000_000),
		words: wholeOf(input, "words", 100, 1_000_000),
	};
}

function wholeOf(input: CommandInput, name: string, otherwise: number, most: number): number {
	const text = input.option(name);
	if (text === undefined) return otherwise;
	const value = /^\d{1,9}$/.test(text) ? Number(text) : 0;
	if (value >= 1 && value <= most) return value;
	throw new UsageError(`--${name} is a whole number from 1 to ${most}`);
}

function clientsOf(text: string): number[] {
	const numbers = text.split(",").map((part) => (/^\d{1,5}$/.test(part.trim()) ? Number(part) : 0));
	if (numbers.every((number) => number >= 1 && number <= CLIENTS_MAX)) return numbers;
	throw new UsageError(`--clients are numbers from 1 to ${CLIENTS_MAX}, separated by commas`);
}

/** Of the gateway that answers; null if it does not tell us. */
async function cpuSeconds({ env }: CommandContext, url: string): Promise<number | null> {
	const token = env.METRICS_TOKEN;
	try {
		const headers: Record<string, string> = token ? { authorization: `Bearer ${token}` } : {};
		const text = await (await fetch(`${url}/metrics`, { headers })).text();
		const value = /^process_cpu_seconds_total (\S+)$/m.exec(text)?.[1];
		return value === undefined ? null : Number(value);
	} catch {
		return null;
	}
}

const perSecond = ({ answered, seconds }: BenchStep) => answered / seconds;
const refusedOf = ({ refused }: BenchStep) => Object.values(refused).reduce((sum, count) => sum + count, 0);
const share = (times: readonly number[], part: number) =>
	times[Math.min(times.length - 1, Math.floor(times.length * part))];

function verdictOf(steps: readonly Measured[]): string {
	const best = steps.reduce<Measured | undefined>(
		(most, step) => (most && perSecond(most) >= perSecond(step) ? most : step),
		undefined,
	);
	if (best === undefined || best.answered === 0) {
		const codes = [...new Set(steps.flatMap((step) => Object.keys(step.refused)))].join(", ");
		return `Nothing was answered: ${codes || "no step was run"}.`;
	}
	const most = `At most ${perSecond(best).toFixed(0)} requests a second, with ${best.clients} clients.`;
	const last = steps.at(-1) as Measured;
	const codes = Object.entries(last.refused).sort((a, b) => b[1] - a[1]);
	if ((best.gatewayCores ?? 0) >= BUSY_CORES)
		return `${most} The wall is the gateway's process, at ${(best.gatewayCores ?? 0).toFixed(2)} of a core: WORKERS adds one a core.`;
	if (codes[0] !== undefined)
		return `${most} The wall is a limit: ${codes.map(([code, count]) => `${count} × ${code}`).join(", ")} with ${last.clients} clients.`;
	const former = steps.at(-2);
	if (former !== undefined && perSecond(last) < perSecond(former) * GROWTH_MIN)
		return `${most} The wall is the model's servers, or this machine's own client: more clients got no more, and the gateway was not busy.`;
	return `${most} No wall was met: try more clients.`;
}

function tableOf(steps: readonly Measured[], stream: boolean): string {
	const ms = (times: readonly number[], part: number) => share(times, part)?.toFixed(1) ?? "–";
	const head = [
		"clients",
		"requests/s",
		"tokens/s",
		"p50 ms",
		"p99 ms",
		...(stream ? ["first p50 ms", "first p99 ms"] : []),
		"refused",
		"gateway cores",
	];
	const rows = steps.map((step) => [
		String(step.clients),
		perSecond(step).toFixed(0),
		(step.completionTokens / step.seconds).toFixed(0),
		ms(step.endMs, 0.5),
		ms(step.endMs, 0.99),
		...(stream ? [ms(step.firstMs, 0.5), ms(step.firstMs, 0.99)] : []),
		String(refusedOf(step)),
		step.gatewayCores?.toFixed(2) ?? "–",
	]);
	return formatTable(head, rows);
}

function jsonOf(step: Measured) {
	const { clients, seconds, answered, refused, completionTokens, cost, gatewayCores, endMs, firstMs } = step;
	const times = (list: readonly number[]) => ({ p50: share(list, 0.5) ?? null, p99: share(list, 0.99) ?? null });
	return {
		clients,
		seconds,
		answered,
		refused,
		completionTokens,
		costUsd: formatUsd(cost),
		gatewayCores,
		endMs: times(endMs),
		firstMs: times(firstMs),
	};
}
