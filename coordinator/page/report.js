// The page as a file of its own: what it shows lies in it.
'use strict';
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const draw = () => lockstep.show(data);
  lockstep.showHang(data.hang, document.getElementById('generations-title').parentElement);
  draw();
  addEventListener('resize', draw);
  document.getElementById('connection').textContent = `as of ${lockstep.time(data.made)}`;
  document.body.dataset.shown = 'yes';
})();
