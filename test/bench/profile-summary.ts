/**
 * Prints where the time of a `--cpu-prof` profile went: functions by self time, then our own functions with all they call.
 *
 *     bun test/bench/profile-summary.ts FILE.cpuprofile
 */
export interface ProfileNode {
	readonly id: number;
	readonly callFrame: { functionName: string; url: string; lineNumber: number };
	readonly children?: readonly number[];
}

interface Profile {
	readonly nodes: readonly ProfileNode[];
	readonly samples: readonly number[];
	readonly timeDeltas: readonly number[];
}

const ROWS = 60;

const [path] = process.argv.slice(2);
if (path === undefined) throw new Error("give the profile's file");
process.stdout.write(summaryOf((await Bun.file(path).json()) as Profile));

function summaryOf(profile: Profile): string {
	const selfOf = new Map<number, number>();
	let total = 0;
	profile.samples.forEach((id, index) => {
		const micros = profile.timeDeltas[index] ?? 0;
		// A long gap is idleness, which the profile does not mark.
		if (micros > 5_000) return;
		selfOf.set(id, (selfOf.get(id) ?? 0) + micros);
		total += micros;
	});
	const byId = new Map(profile.nodes.map((node) => [node.id, node]));
	const self = new Map<string, number>();
	const inclusive = new Map<string, number>();
	const add = (map: Map<string, number>, name: string, micros: number) => map.set(name, (map.get(name) ?? 0) + micros);

	/** Time of the node and all below it; a function that calls itself counts once. */
	function walk(node: ProfileNode, above: ReadonlySet<string>): number {
		const name = nameOf(node);
		const own = selfOf.get(node.id) ?? 0;
		add(self, name, own);
		const within = new Set(above).add(name);
		let sum = own;
		for (const id of node.children ?? []) {
			const child = byId.get(id);
			if (child) sum += walk(child, within);
		}
		if (!above.has(name)) add(inclusive, name, sum);
		return sum;
	}
	const children = new Set(profile.nodes.flatMap((node) => node.children ?? []));
	for (const node of profile.nodes) if (!children.has(node.id)) walk(node, new Set());

	const table = (title: string, map: Map<string, number>, keep: (name: string) => boolean) => {
		const rows = [...map].filter(([name, micros]) => micros > 0 && keep(name)).sort((a, b) => b[1] - a[1]);
		const lines = rows
			.slice(0, ROWS)
			.map(
				([name, micros]) =>
					`${((100 * micros) / total).toFixed(2).padStart(6)} %  ${(micros / 1000).toFixed(0).padStart(6)} ms  ${name}`,
			);
		return `${title}\n${lines.join("\n")}\n\n`;
	};
	return (
		table(`self time (of ${(total / 1000).toFixed(0)} ms sampled)`, self, () => true) +
		table("with all they call, own code only", inclusive, (name) => /(src|test)\//.test(name))
	);
}

function nameOf({ callFrame }: ProfileNode): string {
	const { functionName, url, lineNumber } = callFrame;
	const file = url.replace(/^.*?((src|test|node_modules)\/.*)$/, "$1");
	return `${functionName || "(anonymous)"}${file === "" ? "" : ` ${file}:${lineNumber + 1}`}`;
}
