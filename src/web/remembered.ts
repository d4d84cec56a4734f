/** A choice stored in this browser; without storage it lasts until the next reload. */
export interface Remembered {
	read(): string | null;
	write(value: string): void;
}

export const createRemembered = (name: string): Remembered => ({
	read() {
		try {
			return localStorage.getItem(name) || null;
		} catch {
			return null;
		}
	},
	write(value) {
		try {
			localStorage.setItem(name, value);
		} catch {
			// Without storage the choice still applies to this page.
		}
	},
});
