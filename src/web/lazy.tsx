import { type ComponentType, type ReactNode, useEffect, useState } from "react";
import { ApiError } from "./http.ts";
import { ErrorMessage } from "./parts/page.tsx";
import { t } from "./texts.tsx";

/** A component whose code is loaded when the component is first shown, or earlier by `preload`. */
export type Lazy<Props extends object> = ((props: Props) => ReactNode) & { preload(): void };

const NOT_LOADED = t(
	"This page could not be loaded. Reload it: the service may be unreachable or may have been updated.",
);

interface Code<Props extends object> {
	found?: ComponentType<Props>;
	fetch(): Promise<void>;
}

/**
 * Replaces `React.lazy`: its `Suspense` hides loaded content until 300 ms after the placeholder appeared. After a
 * failed load a button reloads the page.
 */
export function lazy<Props extends object>(
	load: () => Promise<{ default: ComponentType<Props> }>,
	waiting: ReactNode,
): Lazy<Props> {
	let loading: Promise<void> | undefined;
	const code: Code<Props> = {
		fetch() {
			loading ??= load().then(
				(module) => {
					code.found = module.default;
				},
				(error) => {
					loading = undefined;
					throw error;
				},
			);
			return loading;
		},
	};
	const show = (props: Props) => <Loaded {...{ code, props, waiting }} />;
	return Object.assign(show, { preload: () => void code.fetch().catch(() => undefined) });
}

function Loaded<Props extends object>(shown: { code: Code<Props>; props: Props; waiting: ReactNode }) {
	const { code, props, waiting } = shown;
	const [state, setState] = useState<"waiting" | "here" | "failed">("waiting");
	useEffect(() => {
		code.fetch().then(
			() => setState("here"),
			() => setState("failed"),
		);
	}, [code]);
	const Found = code.found;
	if (Found) return <Found {...props} />;
	if (state === "waiting") return waiting;
	const error = new ApiError(NOT_LOADED, { status: 0, code: "not_loaded" });
	return <ErrorMessage error={error} retry={() => location.reload()} />;
}
