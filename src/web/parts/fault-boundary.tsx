import { Component, type ReactNode } from "react";
import { pageFault } from "../http.ts";
import { Problem } from "./problem.tsx";

/** What is thrown as a page is drawn is said in its place, and what stands round it goes on; at another `place` it begins anew. */
export class FaultBoundary extends Component<{ place?: string; children: ReactNode }, { failed: boolean }> {
	override state = { failed: false };

	static getDerivedStateFromError() {
		return { failed: true };
	}

	override componentDidUpdate(before: { place?: string }) {
		if (this.state.failed && before.place !== this.props.place) this.setState({ failed: false });
	}

	override render() {
		if (!this.state.failed) return this.props.children;
		return (
			<div className="page">
				<Problem error={pageFault()} retry={() => location.reload()} />
			</div>
		);
	}
}
