import { useEffect } from "react";

/** Number of components that block leaving the page because they show a secret, which is shown only once. */

let holders = 0;
const waiting: (() => void)[] = [];

/** Calls `leave` now, or once no component blocks leaving. */
export function runWhenLeavingAllowed(leave: () => void): void {
	if (holders === 0) leave();
	else if (!waiting.includes(leave)) waiting.push(leave);
}

const HELD = "held";

/** While `held`: blocks the back button, warns before the tab closes, and delays the redirect after a lost session. */
export function useHeldPage(held: boolean): void {
	useEffect(() => {
		if (!held) return;
		const ask = (event: BeforeUnloadEvent) => event.preventDefault();
		// The back button removes the additional history entry, so this adds it again.
		const stay = () => {
			if (history.state !== HELD) history.pushState(HELD, "", location.href);
		};
		holders += 1;
		stay();
		addEventListener("beforeunload", ask);
		addEventListener("popstate", stay);
		return () => {
			removeEventListener("beforeunload", ask);
			removeEventListener("popstate", stay);
			holders -= 1;
			// Runs after the current effects, because another component may start to block leaving.
			queueMicrotask(() => {
				if (holders === 0) for (const leave of waiting.splice(0)) leave();
			});
		};
	}, [held]);
}
