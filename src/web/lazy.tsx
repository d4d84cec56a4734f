import { type ComponentType, type ReactNode, useEffect, useState } from "react";
import { ApiError } from "./http.ts";
import { Problem } from "./parts/problem.tsx";
import { t } from "./texts.tsx";

/** A component whose code is loaded when it is first shown, or earlier by `preload`. */
export type Lazy<Props extends object> = ((props: Props) => ReactNode) & { preload(): void };

const NOT_LOADED = t(
	"This part of the console could not be loaded. The service may be unreachable, or newer than this page.",
);

/**
 * Like React's `lazy` without `Suspense`, which withholds loaded content until 300 ms after its placeholder. A failure
 * shows a button that reloads the page.
 */
export function lazy<Props extends object>(
	load: () => Promise<{ default: ComponentType<Props> }>,
	waiting: ReactNode,
): Lazy<Props> {
	const code = createCode(load);
	const show = (props: Props) => <Loaded code={code} props={props} waiting={waiting} />;
	show.preload = () => void code.fetch().catch(() => undefined);
	return show;
}

interface Code<Props extends object> {
	found(): ComponentType<Props> | undefined;
	fetch(): Promise<void>;
}

function createCode<Props extends object>(load: () => Promise<{ default: ComponentType<Props> }>): Code<Props> {
	let found: ComponentType<Props> | undefined;
	let loading: Promise<void> | undefined;
	return {
		found: () => found,
		fetch() {
			loading ??= load().then(
				(module) => {
					found = module.default;
				},
				(error) => {
					loading = undefined;
					throw error;
				},
			);
			return loading;
		},
	};
}

function Loaded<Props extends object>({
	code,
	props,
	waiting,
}: {
	code: Code<Props>;
	props: Props;
	waiting: ReactNode;
}) {
	const [state, setState] = useState<"waiting" | "here" | "failed">("waiting");
	useEffect(() => {
		let shown = true;
		code.fetch().then(
			() => shown && setState("here"),
			() => shown && setState("failed"),
		);
		return () => {
			shown = false;
		};
	}, [code]);
	const Found = code.found();
	if (Found) return <Found {...props} />;
	if (state === "waiting") return waiting;
	const error = new ApiError(NOT_LOADED, { status: 0, code: "not_loaded" });
	return <Problem error={error} retry={() => globalThis.location.reload()} />;
}
