/** A choice that this browser keeps; without storage until the next reload. */
export const createRemembered = (name: string) => ({
	read() {
		try {
			return localStorage.getItem(name) || null;
		} catch {
			return null;
		}
	},
	write(value: string) {
		try {
			localStorage.setItem(name, value);
		} catch {
			// Without storage the choice still applies to this page.
		}
	},
});
