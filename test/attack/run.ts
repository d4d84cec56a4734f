/**
 * The long form of the attacks on shared resources: `bun run attack [-- --seconds 300] [--only NAME]`. Writes the table
 * of `results.md`. Exit code 1 if a customer's request was refused or delayed.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { AttackRow } from "./rows.ts";

const { values } = parseArgs({ options: { seconds: { type: "string", default: "300" }, only: { type: "string" } } });
// With a name, one of the files may have no attack. Without one, each must have some.
const named = values.only === undefined ? ["-t", " attack with "] : ["-t", values.only, "--pass-with-no-tests"];
const rowsPath = join(import.meta.dir, ".rows");
rmSync(rowsPath, { force: true });
const files = ["budgets.test.ts", "console-budgets.test.ts"].map((name) => join(import.meta.dir, name));
let failed = 0;
for (const file of files)
	failed += await Bun.spawn([process.execPath, "test", file, ...named], {
		env: { ...process.env, LONG: "1", ATTACK_S: values.seconds, ATTACK_ROWS: rowsPath },
		stdio: ["ignore", "inherit", "inherit"],
	}).exited;
const text = existsSync(rowsPath) ? readFileSync(rowsPath, "utf8") : "";
const rows = text
	.split("\n")
	.filter((line) => line !== "")
	.map((line) => JSON.parse(line) as AttackRow);
rmSync(rowsPath, { force: true });
const table = rows.map(
	({ resource, attack, attackers, refused, aloneMs, attackedMs, aloneLoopMs, attackedLoopMs, memoryMb, isFair }) =>
		`| ${[resource, attack, attackers, refused, aloneMs, attackedMs, aloneLoopMs, attackedLoopMs, Math.round(memoryMb), isFair ? "yes" : "**no**"].join(" | ")} |`,
);
writeFileSync(
	join(import.meta.dir, "results.md"),
	`# Attacks on shared resources

\`bun run attack -- --seconds ${values.seconds}\`, ${new Date().toISOString().slice(0, 10)}.

A normal customer sends requests, first alone and then while attackers use up a resource. *Refused*: the customer's
refused requests. *Alone* and *attacked*: the 99th percentile of the time of its requests in milliseconds. *Loop*: the
same percentile of the attacked process's processor time during these requests. *Memory*: the most that the attacked
process used, in MB. An attack is *fair* if no request is refused in any of three tries, and if in the best try the
processor time is below five times that of alone, or below a floor under which a busy machine shows only noise.

| resource | attack | attackers | refused | alone | attacked | loop alone | loop attacked | memory | fair |
|---|---|--:|--:|--:|--:|--:|--:|--:|---|
${table.join("\n")}
`,
);
const unfair = rows.filter(({ isFair }) => !isFair).length;
console.log(`${rows.length} attacks, ${unfair} unfair: see test/attack/results.md`);
process.exit(rows.length > 0 && failed === 0 ? 0 : 1);
