import { expect, test } from "bun:test";
import { withCutOffWorld } from "./cut-off-world.ts";
import { rightTakingActs } from "./right-taking.ts";

const world = await withCutOffWorld();
const { proxy, served } = world;
const { acts, staged: stageAll } = rightTakingActs(world);

test("the tests cover every act in the table of acts that take rights away", async () => {
	const paper = await Bun.file(new URL("../../src/cluster/README.md", import.meta.url)).text();
	const rows = [
		...paper
			.slice(paper.indexOf("| act | from |"))
			.split("\n\n", 1)
			.join("")
			.matchAll(/^\| (.+) \| (.+) \|$/gm),
	];
	const listed = rows.slice(1).flatMap(([, act, from]) => (from ?? "").split(", ").map((one) => `${act} by ${one}`));
	expect(acts.map(({ act, from }) => `${act} by ${from}`).sort()).toEqual(listed.sort());
});

test("an instance cut off from Postgres admits nothing by a right taken away", async () => {
	const staged = await stageAll();
	const serving = () => Promise.all(staged.map(([, { secret }]) => served(secret)));
	const all = Array(staged.length).fill(true);
	expect(await serving()).toEqual(all);
	proxy.freeze();
	// The instance still serves, because it has not noticed that it is cut off. On a busy machine its lease may have
	// ended.
	expect(await serving()).toContain(true);
	const outcomes = await Promise.all(
		staged.map(async ([{ act, from, run }, stage]) => {
			const effective = await run(stage);
			return { act: `${act} by ${from}`, effective, servedAfter: await served(stage.secret) };
		}),
	);
	expect(outcomes).toEqual(
		staged.map(([{ act, from }]) => ({ act: `${act} by ${from}`, effective: true, servedAfter: false })),
	);
}, 60_000);
