/** Counts the members of the dependency object that each function takes. */
import { parseSync } from "oxc-parser";
import type { SourceFile } from "./source-rules.ts";

const MEMBERS_MAX = 8;
const BAG = /(Deps|Parts|Config)$/;
/** Types that may have more than eight members, with the functions or files that take them. Only remove entries. */
const EXCEPTIONS: readonly (readonly [type: string, takenBy: RegExp])[] = [
	// Functions that assemble the program, and checks that compare settings.
	["Config", /^src\/(config|app|planes|cli)\b|: createConsole$/],
	// Passed to all routes, each of which takes only its own dependencies.
	["ConsoleParts", /: createConsoleApi$/],
	["BatchRunnerDeps", /^src\/batch\//],
	["RunDeps", /^src\/(batch|cli)\//],
	["InstanceLeaseParts", /^src\/ledger\//],
	["EpochDeps", /^src\/ledger\//],
	["JournalReplaysDeps", /^src\/ledger\//],
	["GatewayPlaneDeps", /^src\/planes\//],
];

// biome-ignore lint/suspicious/noExplicitAny: nodes are walked without a schema.
type Node = any;
type Declarations = ReadonlyMap<string, Node>;

/**
 * Returns problems such as `src/a.ts: createX takes 12 members of XDeps`, for parameters whose type is an interface, a
 * `Pick` or an intersection.
 */
export function bagProblems(files: readonly SourceFile[], exceptions = EXCEPTIONS): string[] {
	const parsed = files.map(({ path, text }) => ({ path, program: parseSync(path, text).program as Node }));
	const declared = new Map<string, Node>();
	for (const { program } of parsed)
		walk(program, (node) => {
			if (node.type === "TSInterfaceDeclaration" || node.type === "TSTypeAliasDeclaration")
				declared.set(node.id.name, node);
		});
	return parsed.flatMap(({ path, program }) => {
		const problems: string[] = [];
		walk(program, (node, name) => {
			for (const param of node.params?.items ?? node.params ?? []) {
				const annotation = param?.typeAnnotation?.typeAnnotation ?? param?.left?.typeAnnotation?.typeAnnotation;
				if (annotation === undefined || annotation === null || !isBag(annotation)) continue;
				const count = membersOf(annotation, declared).size;
				const place = `${path}: ${name}`;
				const isExcepted = exceptions.some(
					([type, takenBy]) => typesOf(annotation).includes(type) && takenBy.test(place),
				);
				if (count > MEMBERS_MAX && !isExcepted)
					problems.push(`${place} takes ${count} members of ${typesOf(annotation).join(" & ")}`);
			}
		});
		return problems;
	});
}

/** Calls `visit` for each node with the name of the nearest enclosing function or variable. */
function walk(node: Node, visit: (node: Node, name: string) => void, name = ""): void {
	if (Array.isArray(node)) for (const one of node) walk(one, visit, name);
	else if (typeof node?.type === "string") {
		const own = node.id?.name ?? (/^(Property|MethodDefinition)$/.test(node.type) ? node.key?.name : undefined);
		const inner = own ?? name;
		visit(node, inner);
		for (const value of Object.values(node)) if (typeof value === "object") walk(value, visit, inner);
	}
}

function isBag(type: Node): boolean {
	if (type.type === "TSIntersectionType") return type.types.some(isBag);
	if (type.type !== "TSTypeReference") return false;
	const name = type.typeName?.name ?? "";
	const [first] = argumentsOf(type);
	return BAG.test(name) || (/^(Pick|Omit)$/.test(name) && first !== undefined && isBag(first));
}

/** Names in a type: for `Pick<ConsoleDeps, "a"> & Other` these are `ConsoleDeps` and `Other`. */
function typesOf(type: Node): string[] {
	if (type.type === "TSIntersectionType") return type.types.flatMap(typesOf);
	const name = type.typeName?.name;
	const [first] = argumentsOf(type);
	return /^(Pick|Omit)$/.test(name) && first !== undefined ? typesOf(first) : name === undefined ? [] : [name];
}

const argumentsOf = (type: Node): Node[] => type.typeArguments?.params ?? type.typeParameters?.params ?? [];

const literalsOf = (type: Node): string[] =>
	type?.type === "TSUnionType"
		? type.types.flatMap(literalsOf)
		: typeof type?.literal?.value === "string"
			? [type.literal.value]
			: [];

function membersOf(type: Node, declared: Declarations): Set<string> {
	const of = (one: Node) => membersOf(one, declared);
	if (type.type === "TSIntersectionType") return new Set(type.types.flatMap((one: Node) => [...of(one)]));
	if (type.type === "TSTypeLiteral") return new Set(type.members.map((member: Node) => member.key?.name));
	if (type.type !== "TSTypeReference" && type.type !== "TSInterfaceHeritage") return new Set();
	const name = type.typeName?.name ?? type.expression?.name;
	const [first, second] = argumentsOf(type);
	if (name === "Omit" && first !== undefined) {
		const left = of(first);
		for (const literal of literalsOf(second)) left.delete(literal);
		return left;
	}
	const picked = [first, second].flatMap(literalsOf);
	if (picked.length > 0) return new Set(picked);
	const declaration = declared.get(name);
	if (declaration === undefined) return new Set();
	if (declaration.type === "TSTypeAliasDeclaration") return of(declaration.typeAnnotation);
	const own = declaration.body.body.map((member: Node) => member.key?.name as string);
	const inherited = (declaration.extends ?? []).flatMap((one: Node) => [...of(one)]);
	return new Set([...own, ...inherited]);
}
