// Background commands of the workspace: their output, and a button to stop them.

import { toastError } from './a11y.js';
import { h, iconButton, replace } from './dom.js';
import { oneLine, plain, seconds } from './format.js';

export class Jobs {
  constructor(workspace, mirror, section) {
    this.workspace = workspace;
    this.mirror = mirror;
    this.section = section;
    this.element = h('div', { class: 'jobs' });
    this.stops = [mirror.on('jobs', () => this.draw()), mirror.on('snapshot', () => this.load())];
    this.load();
  }

  close() {
    this.stops.forEach((stop) => stop());
  }

  async load() {
    try {
      const page = await this.workspace.jobs();
      this.mirror.jobs.clear();
      page.items.forEach((job) => this.mirror.jobs.set(job.id, job));
      this.draw();
    } catch {
      // The next event brings them.
    }
  }

  draw() {
    const jobs = [...this.mirror.jobs.values()];
    this.section.hidden = !jobs.length;
    replace(
      this.element,
      h(
        'ul',
        {},
        jobs.map((job) => this.item(job)),
      ),
    );
  }

  item(job) {
    const running = job.state === 'running';
    const output = h('pre', { class: 'output', hidden: true, tabindex: '0', role: 'group', 'aria-label': 'Output' });
    const read = async () => {
      if (!output.hidden) return void (output.hidden = true);
      try {
        output.textContent = plain((await this.workspace.job(job.id)).text) || 'No output.';
        output.hidden = false;
      } catch (error) {
        toastError(error);
      }
    };
    return h(
      'li',
      {},
      h('code', { title: job.command }, plain(oneLine(job.command, 60))),
      h(
        'span',
        { class: 'quiet' },
        running
          ? ' running'
          : ` ${job.state.replace('_', ' ')}${job.exit_code === null ? '' : ` (${job.exit_code})`}, ${seconds(job.seconds)}`,
        job.killed_by && ` by ${plain(job.killed_by)}`,
      ),
      h(
        'span',
        { class: 'item-buttons' },
        iconButton('file', 'Show output', read),
        running &&
          iconButton('stop', 'Kill', () =>
            this.workspace.killJob(job.id).catch(toastError),
          ),
      ),
      output,
    );
  }
}
